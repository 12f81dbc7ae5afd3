"""`prune4rel reproduce` as its user meets it."""

import subprocess
import sys

import pytest


def run(*arguments, cwd):
    command = [sys.executable, "-m", "prune4rel", "reproduce", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


def test_list_shows_every_recipe_and_what_it_takes(tmp_path):
    done = run("--list", "--images-per-second", 30000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("table1", "table6", "fig1a", "fig3c", "fig4", "webvision", "1,440", "time"):
        assert name in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-2])) <= 80


def test_dry_run_lists_cells_and_writes_nothing(tmp_path):
    done = run("table5", "--dry-run", "-o", "out", "--images-per-second", 1000, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "cifar10n random, sop+, kCenterGreedy, 0.2" in done.stdout
    assert "27 trainings" in done.stdout
    assert "about 25 h 0 min" in done.stdout
    assert not list(tmp_path.iterdir())


def test_smoke_runs_compares_and_goes_on(tmp_path):
    command = ("table3", "--smoke", "-o", "out", "--noise", "worst", "--ratio", "0.2,0.4")
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Prune4ReL-DiffProb" in done.stdout
    assert "SMOKE" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out/smoke/table3").iterdir()) == [
        "comparison.csv",
        "comparison.md",
        "report.html",
    ]
    again = run(*command, "--quiet", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "")


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
def test_rubbish_ends_in_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    from prune4rel import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["prune4rel", "reproduce", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("how", "said"), [("--no-run", "no such folder"), ("--smoke", "smoke means nothing")])
def test_an_archive_that_makes_no_sense_leaves_nothing_behind(how, said, tmp_path):
    done = run("table1", how, "--archive", "nowhere", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
