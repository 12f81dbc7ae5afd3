import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.oracles.prune4rel import confidence_of
from tests.oracles.similarity import fast_weights
from tests.pipeline.tiny import Ear, tiny
from tests.training.small import write_images

import prune4rel as p4r
from prune4rel import InputError, __version__
from prune4rel.data import load_dataset
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.pipeline import Config, collect, run
from prune4rel.pipeline.collect import (
    COLUMNS,
    gather,
    lent_confidence,
    open_manifest,
    read_manifest,
    seconds_of_everything,
    write_manifest,
    write_results,
)
from prune4rel.progress import Progress
from prune4rel.reading import seal
from prune4rel.report import Cell
from prune4rel.selection import Selection
from prune4rel.signals import Signals


def test_a_new_folder_gets_a_new_manifest(tmp_path):
    assert read_manifest(tmp_path) is None
    (tmp_path / ".lock").touch()
    fresh = open_manifest(tmp_path, restart=False, progress=Progress())
    assert fresh["versions"]["prune4rel"] == __version__
    write_manifest(tmp_path, fresh | {"path": "\udcff"})
    assert read_manifest(tmp_path) == fresh | {"path": "\udcff"}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": 1}', b'{"versions": {}}', b'{"format": 1, "versions": []}', b"\xff\xfe"],
)
def test_what_is_no_manifest(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest\.json: "):
        open_manifest(tmp_path, restart=False, progress=Progress())


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_another_format_is_left_alone(tmp_path, restart):
    (tmp_path / "trainings").mkdir()
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99, "versions": {"prune4rel": "7.0"}}))
    with pytest.raises(InputError, match=r"written by version 7\.0 of prune4rel.*format 99, here 1"):
        open_manifest(tmp_path, restart=restart, progress=Progress())
    assert (tmp_path / "trainings").exists()


def test_a_folder_of_another_version_is_gone_on_with_in_so_many_words(tmp_path):
    versions = {"prune4rel": "0.0.1"}
    write_manifest(tmp_path, {"format": 1, "versions": versions, "begun": "long ago"})
    ear = Ear()
    found = open_manifest(tmp_path, restart=False, progress=ear)
    assert ear.said == [f"{tmp_path}: begun by version 0.0.1 of prune4rel, going on with {__version__}"]
    assert (found["begun"], found["versions"]["prune4rel"]) == ("long ago", __version__)


def test_restarting_clears_what_was_done(tmp_path):
    write_manifest(tmp_path, open_manifest(tmp_path, restart=False, progress=Progress()))
    for name in ("warmups", "trainings", "mine"):
        (tmp_path / name).mkdir()
    open_manifest(tmp_path, restart=True, progress=Progress())
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "mine"}


NAMES = ("test_accuracy", "best_accuracy", "relabel_accuracy", "subset_noise", "labels_changed", "size")


def test_the_story_is_what_the_files_say(finished):
    story = collect(finished)
    digits = load_dataset("digits")
    assert (story.dataset, story.n, len(story.cells)) == ("digits", 1348, 2)
    np.testing.assert_array_equal(story.labels, digits.train.labels)
    np.testing.assert_array_equal(story.clean_labels, digits.train.clean_labels)
    for cell in (*story.cells, story.full_training):
        share = "" if cell.label == "everything" else "0.2-"
        folder = finished / "trainings" / f"{cell.label}-{share}sop+-seed0"
        result = json.loads((folder / "result.json").read_text())
        assert {name: getattr(cell, name) for name in NAMES} == {name: result[name] for name in NAMES}
        assert list(cell.curve) == [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert cell.seconds["training"] == result["seconds"]["training"]
        assert sum(cell.class_counts) == cell.size
        if cell.label != "everything":
            chosen = Selection.load(finished / "selections" / folder.name / "selection.parquet")
            np.testing.assert_array_equal(cell.indices, chosen.indices)
            np.testing.assert_array_equal(cell.gains, chosen.gains)
            warm = json.loads((finished / "warmups" / "sop+-seed0" / "step.json").read_text())
            assert cell.seconds["warmup"] == (0 if cell.label == "uniform" else warm["seconds"])
            assert (cell.paid, cell.steps) == ((0, 8) if cell.label == "uniform" else (29, 37))
        else:
            assert (cell.paid, cell.steps) == (0, 42)
    light = story.spotlight
    assert light.test_accuracy == max(cell.test_accuracy for cell in story.cells)
    table = pq.read_table(finished / "trainings" / f"{light.label}-0.2-sop+-seed0" / "corrected_labels.parquet")
    np.testing.assert_array_equal(story.corrected, table["corrected_label"].to_numpy())
    assert story.map_xy.shape == (1348, 2)
    assert story.environment["device"] == "cpu"
    assert story.notes == ()
    np.testing.assert_array_equal(story.thumbnails(np.array([3, 1])), digits.train.images[[3, 1]])


def test_all_trainings_on_everything_are_gathered(finished):
    found = gather(finished)
    assert [cell.label for cell in found.everything] == ["everything"]
    assert [cell.label for cell in found.cells] == ["uniform", "prune4rel", "everything"]


def test_unfinished_trainings_are_left_out_with_a_note(home):
    (home / "trainings" / "uniform-0.2-sop+-seed0" / "step.json").unlink()
    story = collect(home)
    assert [cell.label for cell in story.cells] == ["prune4rel"]
    assert story.notes == ("1 of 3 trainings are not finished and not shown.",)


def test_interrupted_steps_are_owned_up_to(home):
    for path in home.glob("trainings/*/step.json"):
        path.write_text(json.dumps(seal(json.loads(path.read_text()) | {"resumed": True, "notes": ["odd"]})))
    notes = collect(home).notes
    assert notes[0].startswith("training sop+ on uniform, ratio 0.2, seed 0 and 2 more: interrupted and taken up again")
    assert notes[-1] == "training sop+ on everything, seed 0: odd"


def test_nothing_to_collect(tmp_path, home):
    with pytest.raises(p4r.InputError, match=r"holds no run; it has no manifest\.json"):
        collect(tmp_path)
    for path in home.glob("trainings/*/step.json"):
        path.unlink()
    with pytest.raises(p4r.InputError, match="no training is finished there"):
        collect(home)
    (home / "config.yaml").unlink()
    with pytest.raises(p4r.InputError, match=r"it has no config\.yaml"):
        collect(home)


def test_a_folder_of_another_format(home):
    manifest = json.loads((home / "manifest.json").read_text())
    (home / "manifest.json").write_text(json.dumps(manifest | {"format": 2}))
    with pytest.raises(p4r.InputError, match="format 2, here 1"):
        collect(home)


def test_a_run_of_trainings_on_everything_alone(home):
    for name in ("uniform", "prune4rel"):
        (home / "trainings" / f"{name}-0.2-sop+-seed0" / "step.json").unlink()
    story = collect(home)
    assert (story.cells, story.spotlight, story.map_xy) == ((), None, None)
    assert story.full_training.size == 1348


def test_features_without_images_and_truth(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    features = rng.normal(size=(90, 4)).astype(np.float32) + labels[:, None]
    np.savez(tmp_path / "data.npz", features=features, labels=labels)
    run(tiny(dataset="arrays", data=str(tmp_path / "data.npz")), tmp_path / "run")
    story = collect(tmp_path / "run")
    assert (story.thumbnails, story.clean_labels, story.cells[0].subset_noise) == (None, None, None)
    assert story.cells[0].test_accuracy is None


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 80)
    embeddings = np.repeat(np.eye(3), 2, axis=1)[labels] + 0.4 * rng.normal(size=(80, 6))
    return Signals(labels=labels, probabilities=rng.dirichlet(np.ones(3), 80), embeddings=embeddings)


def oracle(signals, chosen, tau, similarity, confidence, strict):
    weights = np.array(fast_weights(np.asarray(signals.embeddings), tau, similarity, strict=strict), dtype=float)
    np.fill_diagonal(weights, 1.0)
    lends = confidence_of(np.asarray(signals.probabilities), signals.labels, confidence)
    return sum(weights[pick] * lends[pick] for pick in chosen.indices)


@pytest.mark.parametrize("preset", PRESETS)
def test_lent_confidence_of_each_preset(signals, preset):
    chosen = p4r.select("prune4rel", signals, size=12, preset=preset)
    own = [chosen.options[name] for name in ("tau", "similarity", "confidence", "strict")]
    np.testing.assert_allclose(lent_confidence(signals, chosen), oracle(signals, chosen, *own), rtol=1e-6)


def test_lent_confidence_of_another_method(signals):
    chosen = p4r.select("uniform", signals, size=12)
    settled = p4r.select("prune4rel", signals, size=1, preset="coverage").options["tau"]
    found = oracle(signals, chosen, settled, "shifted-cosine", "max-prob", strict=False)
    np.testing.assert_allclose(lent_confidence(signals, chosen), found, rtol=1e-6)
    assert (lent_confidence(signals, chosen)[chosen.indices] > 0).all()


def test_pictures_in_files_are_shown_and_one_that_has_gone_is_grey(tmp_path):
    data = write_images(tmp_path / "images", n=12)
    (tmp_path / "lists").mkdir()
    names = [data.class_names[label] for label in data.train.labels]
    lines = [f"{file},{name}" for file, name in zip(data.train.files, names, strict=True)]
    (tmp_path / "lists" / "t.csv").write_text("\n".join(["path,label", *lines]))
    own = {"dataset": "table", "data": str(tmp_path / "lists" / "t.csv"), "options": {"image_size": 8}}
    run(tiny(**own, methods=["uniform"]), tmp_path / "run")
    data.train.files[3].unlink()
    data.train.files[3].touch()
    ear = Ear()
    story = collect(tmp_path / "run", ear)
    assert "t.csv lists files outside of its folder, which may be shown" in ear.said[0]
    assert story.notes[0].startswith("Examples changed or went away since this run")
    shown = story.thumbnails(np.array([0, 3, 11]))
    assert (shown.shape, shown.dtype) == ((3, 96, 96, 3), np.uint8)
    assert (shown[1] == 128).all()
    bright = [shown[place].mean() > 128 for place in (0, 2)]
    assert bright == [data.class_names[data.train.labels[index]] == "bright" for index in (0, 11)]


def test_labels_that_changed_since_are_not_told_as_those_it_was_made_with(home, tmp_path):
    np.save(tmp_path / "other.npy", np.zeros(1348, dtype=np.int64))
    config = Config.load(home / "config.yaml").changed(labels=str(tmp_path / "other.npy"))
    config.save(home / "config.yaml")
    with pytest.raises(InputError, match="labels of digits changed since; run it again"):
        collect(home)


def cell(label="uniform", *, learner="sop", ratio=0.2, seed=0, size=20, **known):
    return Cell(
        method="any", label=label, learner=learner, ratio=ratio, seed=seed, size=size, indices=np.arange(size), **known
    )


def test_training_on_everything_measured_or_scaled_up():
    cells = [
        cell(size=20, seconds={"training": 2.0}),
        cell(size=50, seconds={"training": 10.0}),
        cell(learner="elr", seconds={"training": 1.0}),
    ]
    assert seconds_of_everything(cells, "sop", 100) == (pytest.approx((10 + 20) / 2), False)
    whole = [cell("everything", ratio=1.0, seed=seed, size=100, seconds={"training": 8.0 + seed}) for seed in range(2)]
    assert seconds_of_everything([*cells, *whole], "sop", 100) == (8.5, True)
    assert seconds_of_everything([*cells, *whole], "elr", 100) == (pytest.approx(5.0), False)
    assert seconds_of_everything([*cells, *whole], "cores", 100) is None


def test_one_line_a_training(tmp_path):
    hostile = 'a "quoted", label\nof two lines'
    cells = [cell(hostile, test_accuracy=0.1 + 0.2, labels_changed=3, seconds={"training": 2.5}), cell("everything")]
    write_results(cells, tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == COLUMNS
    assert first["method"] == hostile
    assert float(first["test_accuracy"]) == 0.1 + 0.2
    assert (first["size"], first["labels_changed"], first["training_seconds"]) == ("20", "3", "2.5")
    assert (second["test_accuracy"], second["warmup_seconds"]) == ("", "")
