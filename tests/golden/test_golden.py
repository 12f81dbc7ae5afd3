"""What must stay as it was at commit bfc5202; `make` says how it was taken down.

Whatever is there today may be joined by more: names, columns, files and options may be added. None may go or change,
unless it stands in `ON_PURPOSE`, with the reason.
"""

import csv
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.golden import make
from tests.golden.make import BROKEN, HERE, KEPT, OPTIONS, command

import prune4rel as p4r

ON_PURPOSE: dict[str, str] = {
    "commands | demo | help": "without PyTorch it shows less, and says what",
    "commands | doctor | help": "it says what --json is for",
    "commands | reproduce | help": "budgets is a recipe, too",
    "commands | reproduce | options | name | help": "likewise",
    "commands | run | help": "it takes a SOURCE, too",
    "commands | run | options | --everything": "--no-everything says no where everybody has the same number of steps",
    "commands | run | options | --methods | help": "a contender can have a ratio and a learner of its own",
    "commands | select | help": "it takes a SOURCE, too",
    "commands | select | options | --output -o": "names of examples can be written, too",
    "commands | run | options | --learners | help": "features are learnt by logistic unless told",
    "commands | train | help": "it trains on everything by trust unless told",
    "commands | train | options | --learner": "likewise",
    "datasets | hf | label": "the column of labels is guessed, and said aloud, unless it is named",
    "digits/config.yaml | .everything": "nothing, unless told yes or no",
    "digits/manifest.json | .asked.everything": "likewise",
}
"""Differences that `differences` finds and that are meant, with the reason."""

AS_THEN = ("--signals-from", "warmup")
"""Methods went by a warm-up on features, too; today that is asked for."""

MODELS = ("everything-sop+-seed0", "prune4rel-0.2-sop+-seed0", "uniform-0.2-sop+-seed0")


def golden(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def differences(old, new, at=""):
    """Return what is gone or changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = [line for name, value in old.items() for line in differences(value, new.get(name), f"{at} | {name}")]
    else:
        found = [] if old == new else [f"{at[3:]}: was {old!r}, is {new!r}"]
    return [line for line in found if not any(line.startswith(meant) for meant in ON_PURPOSE)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder in which every command that writes files has run."""
    home = tmp_path_factory.mktemp("golden")
    make.make_data(home)
    make.run_commands(home, *AS_THEN)
    return home


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A copy of the files that are kept, to be worked in."""
    monkeypatch.chdir(shutil.copytree(KEPT, tmp_path / "kept"))
    return tmp_path / "kept"


# Picks


@pytest.mark.parametrize("method", OPTIONS)
def test_every_method_picks_what_it_picked(method):
    with np.load(HERE / "picks.npz") as file:
        mine = [row for row, name in enumerate(file["names"]) if name.split()[0] == method]
        old = {name: file[name][mine] for name in file.files}
    new = make.picks(old["names"].tolist())
    wrong = (old["indices"] != new["indices"]).any(axis=1)
    assert old["names"][wrong].tolist() == []
    for name in ("gains", "confidence", "objective"):
        np.testing.assert_allclose(new[name], old[name], rtol=1e-9, atol=1e-11, err_msg=name)
    np.testing.assert_allclose(new["weights"], old["weights"], rtol=1e-5, atol=1e-5)  # from a system hardly regular


def test_all_cases_are_compared():
    with np.load(HERE / "picks.npz") as file:
        assert file["names"].tolist() == list(make.cases())


@pytest.mark.parametrize("method", OPTIONS)
def test_a_manifest_says_what_it_said(method):
    name = f"select {method}"
    assert differences({name: golden("schemas.json")[name]}, {name: make.manifest_of(method)}) == []


# Files


def test_every_learner_comes_to_what_it_came_to(tmp_path):
    make.make_data(tmp_path)
    new = make.trainings(tmp_path, *AS_THEN)
    with np.load(HERE / "trainings.npz") as old:
        for name in old.files:
            if name.startswith("confidence"):
                np.testing.assert_allclose(new[name], old[name], atol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(new[name], old[name], err_msg=name)


def test_files_hold_what_they_held(home):
    old = {name: value for name, value in golden("schemas.json").items() if not name.startswith("select ")}
    assert differences(old, make.schemas(home)) == []


def test_columns_of_the_table_keep_their_order(home):
    old, new = (
        next(csv.reader((place / "run" / "results.csv").read_text(encoding="utf-8").splitlines()))
        for place in (KEPT, home)
    )
    assert [column for column in new if column in old] == old


# Commands


def test_commands_options_and_lists_are_those_they_were():
    assert differences(golden("commands.json"), make.everything_said()) == []


@pytest.mark.parametrize("name", golden("commands.json")["commands"])
def test_help_shows_every_option(name):
    shown = command(name, "--help").split()
    for option in golden("commands.json")["commands"][name]["options"]:
        if f"{name} {option}" not in ON_PURPOSE:
            assert option.split()[0].lower() in " ".join(shown).lower()


# Files of old


@pytest.mark.parametrize("name", ["signals", "shards", "signals.npz", "signals.safetensors", "signals.parquet"])
def test_signals_of_old_are_read(name):
    signals = p4r.Signals.load(KEPT / name)
    there = {path.stem: np.load(path) for path in (KEPT / "signals").glob("*.npy")}
    assert len(there) == 10
    assert signals.class_names == tuple(there.pop("class_names")) == ("bright", "dark")
    for key, array in there.items():
        np.testing.assert_array_equal(getattr(signals, key), array, err_msg=key)
    assert np.flatnonzero(np.isinf(signals.losses)).tolist() == [BROKEN]
    assert not signals.embeddings[BROKEN].any()


@pytest.mark.parametrize("name", ["margin", "gradmatch"])
def test_a_selection_of_old_is_read(name):
    chosen = p4r.Selection.load(KEPT / f"{name}.parquet")
    table = pq.read_table(KEPT / f"{name}.parquet").to_pydict()
    old = json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))
    assert (len(chosen), chosen.n, chosen.method) == (12, 96, name)
    for key, column in (("indices", "index"), ("gains", "gain"), ("labels", "label"), ("ids", "id")):
        assert getattr(chosen, key).tolist() == table[column]
    assert (dict(chosen.options), dict(chosen.stats)) == (old["options"], old["stats"])
    if name == "margin":
        assert chosen.scores.tolist() == pq.read_table(KEPT / "margin.scores.parquet")["score"].to_pylist()
        assert chosen.weights is None
    else:
        assert chosen.weights.tolist() == table["weight"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_old_says_what_it_said(name):
    model = p4r.load_model(KEPT / "run" / "trainings" / name)
    table = pq.read_table(KEPT / "run" / "trainings" / name / "corrected_labels.parquet")
    with np.load(KEPT / "data.npz") as data:
        said = model.probabilities(data["features"])
        assert model.predict(data["features"]).tolist() == table["corrected_label"].to_pylist()
    np.testing.assert_allclose(said.max(axis=1), table["confidence"].to_numpy(), atol=1e-5)
    assert model.class_names == ("ant", "bee", "cow")


def test_a_run_of_old_is_known_to_be_finished(kept):
    steps = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept.glob("run/*/*/step.json")}
    assert len(steps) == 6
    table = (kept / "run" / "results.csv").read_text(encoding="utf-8")
    command("run", "--config", "run/config.yaml", *AS_THEN, "-q", "-o", "run")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept.glob("run/*/*/step.json")} == steps
    rows, old = (list(csv.DictReader(text.splitlines())) for text in ((kept / "run/results.csv").read_text(), table))
    assert (old[0]["method"], rows[0]["warmup_seconds"]) == ("uniform", "0.0")  # today it pays for no warm-up
    old[0]["warmup_seconds"] = "0.0"
    assert [{column: row[column] for column in old[0]} for row in rows] == old


def test_a_run_of_old_is_reported(kept):
    command("report", "run", "-o", "page.html")
    assert "prune4rel" in (kept / "page.html").read_text(encoding="utf-8")


def test_signals_and_selections_of_old_go_into_commands(kept):
    place = "run/warmups/sop+-seed0/signals"
    command("select", "--signals", place, "--ratio", 0.2, "--balanced", "--device", "cpu", "-o", "again.parquet", "-q")
    old = p4r.Selection.load("run/selections/prune4rel-0.2-sop+-seed0/selection.parquet")
    assert p4r.Selection.load("again.parquet").indices.tolist() == old.indices.tolist()
    command("train", *make.DATA, *make.SMALL, "--subset", "margin.parquet", "--epochs", 1, "-o", "model")
    assert (kept / "model" / "model.safetensors").is_file()


def test_an_archive_of_old_is_counted_in(kept):
    asked = ("table1", "--noise", "worst", "--learner", "sop+", "--method", "Uniform", "--ratio", 0.2)
    command("reproduce", *asked, "--dataset", "cifar10n", "--no-run", "--archive", "archive", "-o", "out", "-q")
    (row,) = csv.DictReader((kept / "out" / "table1" / "comparison.csv").read_text(encoding="utf-8").splitlines())
    entry = json.loads((kept / "archive/cifar10n-worst/Uniform-6a22b1-0.2-sop+-seed0.json").read_text())
    assert (float(row["ours_mean"]), row["seeds"]) == (pytest.approx(entry["numbers"]["test_acc"]), "1")
