import sys

import numpy as np
import pytest
from tests.instances import many, points_of

import prune4rel as p4r
from prune4rel.engines.ray.ann import Cells, find_centres, find_likely, in_cells, likeliest, sort_block
from prune4rel.engines.ray.tiles import Block, unpack
from prune4rel.neighbours.cpu import CpuBackend
from prune4rel.neighbours.similarity import Threshold
from prune4rel.signals import Signals

pytest.importorskip("faiss", reason="faiss is not installed")
THRESHOLD = Threshold(0.9, "shifted-cosine")


@pytest.fixture(scope="module")
def sorted_points():
    rows = many(300, dim=16, clusters=40).rows
    points = points_of(rows)
    return rows, points, find_centres(points.unit(slice(None)), 300)


def sorted_block(points, centres, probes, start, stop):
    block = Block(start, points.rows[start:stop], points.squared_norms[start:stop], None)
    return in_cells(block, sort_block(block, Cells(centres, probes, 1.0)))


@pytest.mark.parametrize("columns", [(0, 150), (150, 300)])
def test_looking_everywhere_finds_every_edge(sorted_points, columns):
    _, points, centres = sorted_points
    cells = Cells(centres, len(centres), 1.0)
    one = sorted_block(points, centres, len(centres), 0, 150)
    other = sorted_block(points, centres, len(centres), *columns)
    found = unpack(find_likely(one, other, THRESHOLD, cells).content)
    wanted = CpuBackend(points).of(np.arange(150), THRESHOLD, max_edges=np.inf)
    inside = (wanted.j >= columns[0]) & (wanted.j < columns[1]) & (wanted.i < wanted.j)
    for name in ("i", "j", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name)[inside])
    assert found.i.size > 50


def test_a_pair_is_found_if_the_lower_one_looks_into_the_right_cell(sorted_points):
    _, points, centres = sorted_points
    one, other = (sorted_block(points, centres, 2, *span) for span in ((0, 150), (150, 300)))
    found = unpack(find_likely(one, other, THRESHOLD, Cells(centres, 2, 0.0)).content)
    wanted = CpuBackend(points).of(np.arange(150), THRESHOLD, max_edges=np.inf)
    inside = wanted.j >= 150
    i, j = wanted.i[inside], wanted.j[inside]
    seen = (one.probes[i] == other.cells[j - 150][:, None]).any(axis=1)
    assert seen.sum() > 0
    np.testing.assert_array_equal(found.i, i[seen])
    np.testing.assert_array_equal(found.j, j[seen])


def test_likeliest_cells_are_the_nearest(rng):
    unit, centres = rng.normal(size=(20, 3)).astype(np.float32), rng.normal(size=(7, 3)).astype(np.float32)
    for count in (1, 3, 7):
        wanted = np.argsort(-(unit @ centres.T), axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(likeliest(unit, centres, count), wanted)


def test_the_share_that_is_reported_is_the_share_that_is_found(here, clusters):
    del here
    exact = p4r.select("prune4rel", clusters, size=60, tau=0.93)
    found = p4r.select("prune4rel", clusters, size=60, tau=0.93, engine="ray", ann=True)
    assert found.approximate
    share = found.stats["edges"] / exact.stats["edges"]
    assert found.stats["edges_found"] == pytest.approx(share, abs=0.03)
    assert share > 0.9
    assert found.objective > 0.95 * exact.objective
    assert any(note.startswith("Approximate: ann found about") for note in found.notes)


def test_few_edges_found_are_a_warning(here):
    """Directions without any structure: cells hardly help."""
    del here
    rng = np.random.default_rng(0)
    signals = Signals(
        labels=rng.integers(2, size=600), probabilities=np.full((600, 2), 0.5), embeddings=rng.normal(size=(600, 40))
    )
    found = p4r.select("prune4rel", signals, size=60, engine="ray", ann_share=0.3)
    assert found.stats["edges_found"] < 0.6
    assert any("that is few" in note for note in found.notes)


def test_ann_in_parts(here, clusters):
    del here
    found = p4r.select("prune4rel", clusters, size=60, engine="ray", ann=True, partitions=3)
    assert len(found.notes) >= 2
    assert found.stats["partitions"] == 3
    assert found.stats["edges_found"] > 0.8


def test_without_faiss_the_extra_is_named(here, clusters, monkeypatch):
    del here
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(p4r.InputError, match=r"pip install 'prune4rel\[ann\]'"):
        p4r.select("prune4rel", clusters, size=5, engine="ray", ann=True)
