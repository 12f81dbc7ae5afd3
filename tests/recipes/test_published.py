"""The tables in docs/results.md are those that the files in results/ give, and the files fit the real labels."""

import importlib.util
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from prune4rel.data import load_dataset
from prune4rel.recipes.cells import ACCURACY, NOISE
from prune4rel.recipes.harvest import entries, picks_of

HOME = Path(__file__).resolve().parents[2]
RESULTS, PAGE = HOME / "results", HOME / "docs" / "results.md"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("published_results", HOME / "benchmarks" / "results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_holds_the_tables_that_the_files_give(script):
    page = PAGE.read_text(encoding="utf-8")
    assert script.filled(page) == page
    names = [found["name"] for found in script.PLACE.finditer(page)]
    assert sorted(names) == sorted(script.tables())


def test_the_readme_shows_what_the_files_say():
    shown = (HOME / "README.md").read_text(encoding="utf-8")
    for name, method in {
        "chance": "Uniform",
        "Prune4ReL, balanced": "Prune4ReL_B",
        "preset `coverage`": "Ours (coverage)",
        "preset `label-aware`": "Ours (label-aware)",
    }.items():
        found = [
            entry["numbers"][ACCURACY]
            for entry in entries(RESULTS)
            if (entry["method"], entry["learner"], entry["ratio"]) == (method, "sop+", 0.2) and "training" in entry
        ]
        assert len(found) >= 3
        (line,) = (line for line in shown.splitlines() if line.startswith(f"| {name}"))
        said = line.replace("*", "")
        assert f"| {fmean(found):.1f} ± {stdev(found):.1f} | {len(found)} |" in said


def test_the_result_is_the_last_epoch():
    trained = [entry for entry in entries(RESULTS) if "training" in entry]
    assert trained
    for entry in trained:
        curve = entry["training"]["curves"]["test_accuracy"]
        assert len(curve) == entry["training"]["epochs"]
        assert entry["numbers"][ACCURACY] == pytest.approx(100 * curve[-1], abs=0.01)


def test_picks_are_as_many_as_the_ratio_says():
    for path in RESULTS.rglob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["method"] == "everything":
            assert told["ratio"] == 1
        else:
            assert len(picks_of(path)) == round(told["ratio"] * 50_000)


def test_wrong_labels_counted_again_from_picks_and_real_labels(real_cifar):
    train = load_dataset("cifar10n", real_cifar, noise="worst").train
    wrong = train.labels != train.clean_labels
    checked = list(RESULTS.rglob("cifar10n-worst/*.json"))
    assert checked
    for path in checked:
        told = json.loads(path.read_text(encoding="utf-8"))["numbers"][NOISE]
        assert told == pytest.approx(100 * wrong[picks_of(path)].mean()), path


def test_budgets_are_drawn_where_there_are_results(script, tmp_path, monkeypatch):
    one = json.loads(next((RESULTS / "cifar10n-worst").glob("Uniform*-0.2-sop+-seed0.json")).read_text())
    for steps, method, ratio, value in ((7800, "uniform", 0.2, 80.0), (15600, "uniform", 0.2, 84.0)):
        for seed in range(2):
            folder = tmp_path / "results" / "budgets" / f"cifar10n-worst-{steps}"
            folder.mkdir(parents=True, exist_ok=True)
            entry = one | {"method": method, "ratio": ratio, "seed": seed, "numbers": {ACCURACY: value + seed}}
            (folder / f"{method}-seed{seed}.json").write_text(json.dumps(entry))
    monkeypatch.setattr(script, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(script, "PAGE", tmp_path / "results.md")
    assert script.accuracy_by_budget("cifar10n", "worst") == {"20 % by uniform, sop+": [(7800, 80.5), (15600, 84.5)]}
    assert script.accuracy_by_budget("cifar100n", "noisy") == {}
    script.draw_budgets()
    assert (tmp_path / "results-budgets.png").stat().st_size > 5000
