import numpy as np
import pytest

from prune4rel.engines.ray.tiles import TileStore, pack
from prune4rel.errors import InputError
from prune4rel.neighbours.graph import Edges

EDGES = Edges(np.array([0, 1], np.int32), np.array([5, 6], np.int32), np.array([0.5, 1.0], np.float32))


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_is_put_comes_back(tmp_path, on_disk):
    kept = TileStore(tmp_path if on_disk else None, {"n": 3})
    assert kept.get((0, 1)) is None
    kept.put((0, 1), pack(EDGES))
    np.testing.assert_array_equal(kept.get((0, 1)).j, EDGES.j)
    kept.drop()
    assert (kept.get((0, 1)) is not None) == on_disk


def test_runs_lie_apart_and_are_found_again(tmp_path):
    TileStore(tmp_path, {"n": 3, "tau": 0.5}).put((0, 0), pack(EDGES))
    assert TileStore(tmp_path, {"tau": 0.5, "n": 3}).get((0, 0)) is not None
    assert TileStore(tmp_path, {"n": 3, "tau": 0.6}).get((0, 0)) is None


def test_a_damaged_tile_counts_as_missing(tmp_path):
    kept = TileStore(tmp_path, {})
    for damage in (lambda old: old[:-5], lambda old: old[:0], lambda old: old[:20] + b"?" + old[21:]):
        kept.put((2, 3), pack(EDGES))
        (file,) = tmp_path.glob("graph-*/tile-00002-00003.parquet")
        file.write_bytes(damage(file.read_bytes()))
        assert kept.get((2, 3)) is None


def test_a_work_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be used as the work folder"):
        TileStore(tmp_path / "file", {})
