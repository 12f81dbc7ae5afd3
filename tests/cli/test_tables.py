import numpy as np
import pytest

from prune4rel.cli.tables import print_run
from prune4rel.pipeline.collect import Findings
from prune4rel.report import Cell, Story


def findings(cells, everything=()):
    labels = np.zeros(100, dtype=np.int64)
    story = Story(
        title="t", dataset="d", n=100, class_names=("a",), labels=labels, class_counts=(100,), cells=tuple(cells)
    )
    return Findings(story, tuple(everything))


def cell(label="uniform", *, learner="sop+", ratio=0.2, seed=0, size=20, **known):
    return Cell(
        method="m", label=label, learner=learner, ratio=ratio, seed=seed, size=size, indices=np.arange(size), **known
    )


@pytest.fixture
def printed(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def show(found):
        print_run(found)
        return capsys.readouterr().out

    return show


def test_numbers_by_hand(printed):
    first = {"warmup": 2.0, "selection": 0.5, "training": 10.0}
    second = {"warmup": 4.0, "selection": 1.5, "training": 20.0}
    cells = [
        cell(seed=0, test_accuracy=0.5, subset_noise=0.25, relabel_accuracy=0.75, seconds=first),
        cell(seed=1, test_accuracy=0.7, subset_noise=0.35, relabel_accuracy=0.85, seconds=second),
    ]
    out = printed(findings(cells))
    row = next(line for line in out.splitlines() if "uniform" in line)
    assert row.split() == ["uniform", "60.0%", "±", "14.1", "30.0%", "80.0%", "3.00", "s", "1.00", "s", "15", "s"]
    assert "means over 2 seeds" in out
    assert "Training sop+ on everything would take about 1 min 15 s (scaled up)." in out


def test_everything_was_measured(printed):
    whole = [cell("everything", ratio=1.0, size=100, test_accuracy=0.9, seconds={"training": 90.0})]
    out = printed(findings([cell(test_accuracy=0.5, seconds={"training": 1.0})], whole))
    row = next(line for line in out.splitlines() if line.startswith("  everything"))
    assert row.split() == ["everything", "90.0%", "1", "min", "30", "s"]
    assert "  uniform " in out  # all subsets are of one size, which needs no telling
    assert "Training sop+ on everything took 1 min 30 s." in out
    assert "seeds" not in out


def test_names_are_never_cut_and_never_markup(printed):
    long = "a [bold]method[/bold] with a name that is " + "very " * 10 + "long"
    out = printed(findings([cell(long, learner="[red]", test_accuracy=0.5, seconds={"training": 1.0})]))
    assert long in out
    assert "[red]" in out


def test_what_is_known_of_nobody_has_no_column(printed):
    out = printed(findings([cell(seconds={"training": 1.0}, subset_noise=0.5)]))
    assert out.splitlines()[0].split() == ["trained", "on", "noise", "train"]
    assert "noise: wrong labels among those trained on" in out
    assert "accuracy" not in out
    assert "relabelled" not in out


def test_what_is_not_known_is_left_blank(printed):
    row = next(line for line in printed(findings([cell(seconds={"training": 1.0})])).splitlines() if "uniform" in line)
    assert row.split() == ["uniform", "1.00", "s"]
