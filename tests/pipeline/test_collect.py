import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.oracles.prune4rel import confidence_of
from tests.oracles.similarity import fast_weights
from tests.pipeline.tiny import tiny
from tests.training.small import write_images

import prune4rel as p4r
from prune4rel.data import load_dataset
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.pipeline import collect, run
from prune4rel.pipeline.collect import gather, lent_confidence
from prune4rel.selection import Selection
from prune4rel.signals import Signals

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
            assert cell.seconds["warmup"] == warm["seconds"]
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
        path.write_text(json.dumps(json.loads(path.read_text()) | {"resumed": True, "notes": ["odd"]}))
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
    own = {"dataset": "folder", "data": str(tmp_path / "images"), "options": {"image_size": 8}}
    run(tiny(**own, methods=["uniform"]), tmp_path / "run")
    data.train.files[3].unlink()
    data.train.files[3].touch()
    shown = collect(tmp_path / "run").thumbnails(np.array([0, 3, 11]))
    assert (shown.shape, shown.dtype) == ((3, 96, 96, 3), np.uint8)
    assert (shown[1] == 128).all()
    bright = [shown[place].mean() > 128 for place in (0, 2)]
    assert bright == [data.class_names[data.train.labels[index]] == "bright" for index in (0, 11)]
