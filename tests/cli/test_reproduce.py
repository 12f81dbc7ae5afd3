"""`prune4rel reproduce` as its user meets it."""

import subprocess
import sys
from functools import partial

import pytest
from tests.cli.here import call


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    """Return the exit code, output and complaints of the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(call, monkeypatch, capsys, "reproduce")


def test_list_shows_every_recipe_and_what_it_takes(told):
    code, out, err = told("--list", "--images-per-second", 30000)
    assert code == 0, err
    for name in ("table1", "table6", "fig1a", "fig3c", "fig4", "webvision", "1,440", "time"):
        assert name in out
    assert max(map(len, out.splitlines()[:-2])) <= 80


def test_dry_run_lists_cells_and_writes_nothing(told, tmp_path):
    code, out, err = told("table5", "--dry-run", "-o", "out", "--images-per-second", 1000)
    assert code == 0, err
    assert "cifar10n random, sop+, kCenterGreedy, 0.2" in out
    assert "27 trainings" in out
    assert "about 25 h 0 min" in out
    assert not list(tmp_path.iterdir())


def test_smoke_runs_compares_and_goes_on(told, tmp_path):
    command = ("table3", "--smoke", "-o", "out", "--noise", "worst", "--ratio", "0.2,0.4")
    process = [sys.executable, "-m", "prune4rel", "reproduce", *command]
    done = subprocess.run(process, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "Prune4ReL-DiffProb" in done.stdout
    assert "SMOKE" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out/smoke/table3").iterdir()) == [
        "comparison.csv",
        "comparison.md",
        "report.html",
    ]
    assert told(*command, "--quiet")[:2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tabel1", "-o", "x"), "did you mean 'table1'"),
        ((), "--list"),
        (("table1",), "--output"),
        (("table1", "-o", "x"), "prune4rel datasets cifar10n"),
        (("table1", "-o", "x", "--data", "."), "cifar-10-batches-py"),
        (("table1", "-o", "x", "--method", "unifrom"), "did you mean 'Uniform'"),
        (("table1", "-o", "x", "--dataset", "cifar10"), "did you mean 'cifar10n'"),
        (("table1", "--ratio", "a,b", "--dry-run"), "--ratio takes numbers"),
        (("table1", "--ratio", "0.3", "--dry-run"), "0.2, 0.4, 0.6, 0.8"),
        (("table1", "--seeds", "0", "--dry-run"), "seeds"),
        (("table1", "--parallel", "-1", "--dry-run"), "parallel"),
        (("table1", "--set", "epochs=x", "--dry-run"), "epochs must be"),
        (("table1", "--set", "epoch=3", "--dry-run"), "did you mean 'epochs'"),
        (("table1", "--images-per-second", "-3", "--dry-run"), "above 0"),
    ],
)
def test_rubbish_ends_in_one_line(arguments, words, told, tmp_path):
    code, _, said = told(*arguments)
    assert code == 2
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("how", "said"), [("--no-run", "no such folder"), ("--smoke", "smoke means nothing")])
def test_an_archive_that_makes_no_sense_leaves_nothing_behind(how, said, told, tmp_path):
    code, _, err = told("table1", how, "--archive", "nowhere", "-o", "out")
    assert code == 2
    assert said in err
    assert not list(tmp_path.iterdir())
