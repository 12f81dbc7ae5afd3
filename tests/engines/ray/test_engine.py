from dataclasses import replace

import numpy as np
import pytest
from tests.instances import noisy_digits
from typer.testing import CliRunner

import prune4rel as p4r
from prune4rel.cli import app
from prune4rel.cli import select as _select  # noqa: F401 - adds its verb to the app
from prune4rel.engines.ray.engine import serve
from prune4rel.methods import get
from prune4rel.methods.method import Request
from prune4rel.signal_shards import write_signals
from prune4rel.signals import Signals

NOT_COMPARED = ("seconds", "engine")


def on_ray(signals, request, block=None, work_dir=None, **options):
    """Run prune4rel with blocks of a given size."""
    with serve(signals, {}, block=block, work_dir=work_dir) as engine:
        outcome = get("prune4rel").run(engine.signals, replace(request, engine=engine), **options)
        return replace(outcome, stats=outcome.stats | engine.facts())


def assert_same_selection(found, wanted):
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)
    assert found.objective == wanted.objective
    assert {k: v for k, v in found.stats.items() if k not in NOT_COMPARED} == {
        k: v for k, v in wanted.stats.items() if k not in NOT_COMPARED
    }
    assert found.options == wanted.options
    assert found.notes == wanted.notes


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("preset", ["label-aware", "official"])
def test_picks_are_those_of_one_machine(here, clusters, preset, balanced):
    del here
    wanted = p4r.select("prune4rel", clusters, ratio=0.2, balanced=balanced, preset=preset, tau="auto")
    found = p4r.select("prune4rel", clusters, ratio=0.2, balanced=balanced, preset=preset, tau="auto", engine="ray")
    assert_same_selection(found, wanted)
    np.testing.assert_array_equal(found.confidence, wanted.confidence)
    assert found.provenance["sha256"].keys() == wanted.provenance["sha256"].keys()


@pytest.mark.parametrize("method", ["prune4rel", "uniform", "margin"])
@pytest.mark.parametrize("where", ["memory", "folder", "shards"])
def test_what_could_not_be_read_is_left_out_on_a_cluster_too(here, clusters, method, where, tmp_path):
    del here
    known, embeddings = np.ones(len(clusters), dtype=np.bool_), clusters.embeddings.copy()
    known[[0, 5, 6, 150]], embeddings[[0, 5, 6, 150]] = False, 0.0
    junk = replace(clusters, known=known, embeddings=embeddings)
    given = junk if where == "memory" else tmp_path / "signals"
    if where == "folder":
        junk.save(given)
    if where == "shards":
        write_signals(given, [junk.only(np.arange(0, 100)), junk.only(np.arange(100, len(junk)))])
    wanted = p4r.select(method, junk, size=40, balanced=True, seed=3)
    found = p4r.select(method, given, size=40, balanced=True, seed=3, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    assert found.n == wanted.n == len(clusters)
    assert "4 of 700 examples could not be read and were not picked" in found.notes
    assert found.notes == wanted.notes


@pytest.mark.parametrize("block", [1, 97, 350, 5000])
def test_block_size_does_not_show(here, clusters, block):
    del here
    if block == 1:
        clusters = Signals(
            labels=clusters.labels[:12], embeddings=clusters.embeddings[:12], probabilities=clusters.probabilities[:12]
        )
    size = len(clusters) // 3
    wanted = p4r.select("prune4rel", clusters, size=size, target_degree=3)
    found = on_ray(clusters, Request(size=size, device="cpu"), block=block, target_degree=3)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)
    assert found.options["tau"] == wanted.options["tau"]
    assert found.stats["engine"]["tiles"] == -(-len(clusters) // block) * (-(-len(clusters) // block) + 1) // 2


def test_real_data_behind_a_screen(here):
    del here
    signals = noisy_digits()
    options = {"ratio": 0.1, "balanced": True, "screening": "projection"}
    wanted = p4r.select("prune4rel", signals, **options)
    assert_same_selection(p4r.select("prune4rel", signals, **options, engine="ray"), wanted)
    assert wanted.stats["screen_width"] < 64


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "paper", "memory": 1, "tau": 0.9},
        {"max_degree": 3},
        {"initial": [5, 3], "tau": 0.99},
        {"eta": 0.5, "confidence": "diff-prob", "strict": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_way_through_the_selection(here, clusters, options):
    del here
    wanted = p4r.select("prune4rel", clusters, size=40, **options)
    assert_same_selection(p4r.select("prune4rel", clusters, size=40, engine="ray", **options), wanted)


def test_too_little_memory_for_the_true_gain(here, clusters):
    del here
    with pytest.raises(p4r.InputError, match="more than the 1 B it may take"):
        p4r.select("prune4rel", clusters, size=40, memory=1, engine="ray")


def test_half_precision_and_other_types(here, clusters):
    del here
    for dtype in (np.float16, np.float64):
        signals = Signals(
            labels=clusters.labels,
            embeddings=clusters.embeddings.astype(dtype),
            probabilities=clusters.probabilities.astype(dtype),
        )
        wanted = p4r.select("prune4rel", signals, size=40)
        assert_same_selection(p4r.select("prune4rel", signals, size=40, engine="ray"), wanted)


def test_finished_tiles_are_not_computed_again(here, clusters, tmp_path):
    del here
    request = Request(size=60, device="cpu")
    first = on_ray(clusters, request, block=200, work_dir=tmp_path)
    tiles = sorted(tmp_path.glob("graph-*/tile-*.parquet"))
    assert first.stats["engine"]["tiles"] == len(tiles) == 10
    tiles[0].unlink()
    content = bytearray(tiles[3].read_bytes())
    content[len(content) // 2] ^= 255
    tiles[3].write_bytes(content)
    again = on_ray(clusters, request, block=200, work_dir=tmp_path)
    assert again.stats["engine"]["tiles_reused"] == 8
    np.testing.assert_array_equal(again.indices, first.indices)
    other = on_ray(clusters, request, block=200, work_dir=tmp_path, tau=0.9)
    assert other.stats["engine"]["tiles_reused"] == 0


def test_zero_rows_are_told(here, clusters):
    del here
    embeddings = clusters.embeddings.copy()
    embeddings[[300, 400]] = 0
    given = {"labels": clusters.labels, "embeddings": embeddings, "probabilities": clusters.probabilities}
    with pytest.raises(p4r.InputError, match="2 rows are all zero, the first is row 300"):
        p4r.select(**given, size=10, engine="ray")
    wanted = p4r.select(**given, size=10, allow_zero=True)
    assert_same_selection(p4r.select(**given, size=10, allow_zero=True, engine="ray"), wanted)


def test_methods_that_need_everything_at_once_are_refused(here, clusters):
    del here
    with pytest.raises(p4r.InputError, match="'kcenter' cannot run on this engine"):
        p4r.select("kcenter", clusters, size=10, engine="ray")


def test_settings_of_ray_need_ray(clusters):
    for setting in ({"work_dir": "."}, {"ray_address": "auto"}):
        with pytest.raises(p4r.InputError, match="is for engine='ray'"):
            p4r.select("prune4rel", clusters, size=10, **setting)
    with pytest.raises(p4r.InputError, match="unknown engine 'rya'; did you mean 'ray'"):
        p4r.select("prune4rel", clusters, size=10, engine="rya")


def test_the_command_selects_from_shards(here, clusters, tmp_path):
    del here
    words = []
    for name, array in clusters.arrays().items():
        (tmp_path / name).mkdir()
        for number, part in enumerate(np.array_split(array, 3)):
            np.save(tmp_path / name / f"part-{number}.npy", part)
        words += [f"--{name}", f"file://{tmp_path}/{name}"]
    words += ["--size", "50", "--engine", "ray", "--work-dir", str(tmp_path / "work"), "-q"]
    output = tmp_path / "subset.parquet"
    result = CliRunner().invoke(app, ["select", *words, "--output", str(output)])
    assert result.exception is None
    found = p4r.Selection.load(output)
    np.testing.assert_array_equal(found.indices, p4r.select("prune4rel", clusters, size=50).indices)
    assert found.stats["engine"]["name"] == "ray"
    assert list((tmp_path / "work").glob("graph-*/tile-*.parquet"))
    result = CliRunner().invoke(app, ["select", *words, "--dry-run"])
    assert "there is `prune4rel plan`" in str(result.exception)


@pytest.mark.parametrize("memory", [None, 20_000])
@pytest.mark.parametrize("balanced", [False, True])
def test_parts_pick_the_same_on_a_cluster(here, clusters, balanced, memory):
    del here
    asked = {"size": 60, "balanced": balanced, "partitions": 4, "initial": [5, 300], "memory": memory, "tau": 0.97}
    wanted = p4r.select("prune4rel", clusters, **asked)
    found = p4r.select("prune4rel", clusters, **asked, engine="ray")
    np.testing.assert_array_equal(found.indices, wanted.indices)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-12)
    assert found.notes == wanted.notes
    assert found.options == wanted.options
