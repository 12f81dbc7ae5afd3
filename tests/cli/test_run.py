"""`prune4rel run` as its user meets it."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from tests.cli.here import call

from prune4rel.cli.run import merged
from prune4rel.lock import only_one
from prune4rel.pipeline import Config

SMALL = ("--network", "mlp", "--network-option", "width=8", "--epochs", 2, "--warmup-epochs", 1, "--device", "cpu")


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda verb, *arguments: call(monkeypatch, capsys, verb, "--dataset", "digits", *arguments)


def test_from_nothing_to_a_report(cli, tmp_path):
    code, out, err = cli("run", "--methods", "uniform,prune4rel/coverage", "--everything", *SMALL, "-o", "out")
    assert code == 0, err
    assert "1 warm-up, 2 selections and 3 trainings to do" in err
    assert f"The report: {tmp_path / 'out' / 'report.html'}" in out
    for words in ("uniform", "prune4rel (coverage)", "everything", "accuracy", "relabelled", "warm-up"):
        assert words in out
    assert [line for line in out.splitlines() if len(line) > 80 and "report" not in line] == []
    assert "\x1b" not in out + err
    assert (tmp_path / "out" / "results.csv").read_text().count("\n") == 4
    code, out, err = cli("run", "--config", "out/config.yaml", "-o", "out", "-q")
    assert (code, out, err) == (0, "", "")
    code, _, err = cli("run", "--config", "out/config.yaml", "--ratios", ".1", "--set", "lr=0.5", "-o", "out")
    assert code == 0
    assert "plan.training.lr was 0.07 and is 0.5 now; doing it again" in err
    assert Config.load("out/config.yaml").changed(ratios=(0.2,), training={}).methods == (
        "uniform",
        "prune4rel/coverage",
    )


def test_selections_only(cli, tmp_path):
    (tmp_path / "c.yaml").write_text("select_only: true\nmethods: uniform\n")
    code, out, _ = cli("run", "--config", "c.yaml", *SMALL, "-o", "out")
    assert (code, out) == (0, f"The selections: {tmp_path / 'out' / 'selections'}\n")


def test_flags_win_over_the_file_one_by_one():
    assert merged({"a": {"x": 1, "y": {"z": 2}}, "b": 3}, {"a": {"y": {"z": 4}}, "c": 5}) == {
        "a": {"x": 1, "y": {"z": 4}},
        "b": 3,
        "c": 5,
    }
    assert merged({"a": None}, {"a": {"x": 1}}) == {"a": {"x": 1}}


def test_options_go_to_the_learners_that_have_them(cli, tmp_path):
    (tmp_path / "c.yaml").write_text(
        yaml.safe_dump({"learners": ["sop+", "cross-entropy"], "learner_options": {"sop+": {"rate_v": 7.0}}})
    )
    code, _, err = cli(
        "run", "--config", "c.yaml", "--methods", "uniform", "--learner-option", "rate-u=3", *SMALL, "-o", "out", "-q"
    )
    assert code == 0, err
    assert Config.load("out/config.yaml").learner_options == {"sop+": {"rate_v": 7.0, "rate_u": 3}}
    code, _, err = cli("run", "--learner-option", "rate=3", "-o", "other")
    assert code == 2
    assert "no learner here has 'rate'; did you mean" in err


BAD = [
    (["-o", "out", "--config", "missing.yaml"], "missing.yaml: no such file"),
    (["-o", "out", "--config", "binary.yaml"], "binary.yaml: not a readable YAML"),
    (["-o", "out", "--config", "list.yaml"], "list.yaml: holds no names and values"),
    (["-o", "out", "--config", "key.yaml"], "key.yaml: unknown key 'ratio'; did you mean 'ratios'?"),
    (["-o", "out", "--config", "type.yaml"], "type.yaml: seeds: must be a whole number"),
    (["-o", "out", "--config", "."], "cannot be read"),
    (["-o", "out", "--methods", "prune4real"], "did you mean 'prune4rel'?"),
    (["-o", "out", "--methods", "prune4rel/coverge"], "did you mean 'coverage'?"),
    (["-o", "out", "--methods", ","], "methods: is empty"),
    (["-o", "out", "--learners", "sop*"], "did you mean 'sop"),
    (["-o", "out", "--warmup-learner", "elrr"], "did you mean 'elr'?"),
    (["-o", "out", "--ratios", "2"], "above 0 and at most 1, not 2"),
    (["-o", "out", "--ratios", "a"], "--ratios takes numbers with commas between, not 'a'"),
    (["-o", "out", "--ratios", "nan"], "not nan"),
    (["-o", "out", "--seeds", "0"], "seeds: must be a whole number of at least 1"),
    (["-o", "out", "--seed", "-1"], "seed: must be a whole number of at least 0"),
    (["-o", "out", "--parallel", "0"], "parallel: must be"),
    (["-o", "out", "--epochs", "0"], "epochs: must be"),
    (["-o", "out", "--dataset", "digitz"], "did you mean 'digits'?"),
    (["-o", "out", "--dataset", "folder", "--data", "nowhere"], "nowhere: no such file or folder"),
    (["-o", "out", "--labels", "nowhere.npy"], "nowhere.npy"),
    (["-o", "out", "--option", "noise"], "--option takes NAME=VALUE"),
    (["-o", "out", "--option", "nois=0.2"], "did you mean 'noise'?"),
    (["-o", "out", "--set", "lrr=1"], "did you mean 'lr'?"),
    (["-o", "out", "--network", "small-cn"], "did you mean 'small-cnn'?"),
    (["-o", "out", "--device", "gpu"], "gpu"),
    (["-o", "out", "--time-budget", "soon"], "cannot read 'soon' as a duration"),
    (["-o", "out", "--time-budget", "0.01s", *map(str, SMALL)], "the time budget is too short"),
    ([], "--output FOLDER"),
    (["-o", "file"], "file: is a file; a run needs a folder"),
    (["-o", "missing/out"], "does not exist; make it first"),
    (["-o", "full"], "full: holds 'thesis.tex' but no run"),
    (["-o", "newer"], "newer: was written by version 9.9 of prune4rel"),
    (["-o", "broken"], "not a readable manifest of a run"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), BAD, ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else ""
)
def test_rubbish_ends_in_one_line(cli, tmp_path, arguments, words):
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "key.yaml").write_text("ratio: 0.2\n")
    (tmp_path / "type.yaml").write_text("seeds: many\n")
    (tmp_path / "file").touch()
    for name in ("full", "newer", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    (tmp_path / "newer" / "manifest.json").write_text(json.dumps({"format": 2, "versions": {"prune4rel": "9.9"}}))
    (tmp_path / "broken" / "manifest.json").write_text("{")
    code, out, err = cli("run", *arguments)
    assert code == 2
    assert words in err
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not any((tmp_path / "out").glob("[!.]*"))


def test_a_second_process_is_turned_away(cli, tmp_path):
    (tmp_path / "out").mkdir()
    with only_one(tmp_path / "out"):
        code, _, err = cli("run", "--methods", "uniform", *SMALL, "-o", "out")
    assert code == 2
    assert f"another process (process {os.getpid()}) is working there" in err


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
from prune4rel.cli import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="no such limits there")
@pytest.mark.parametrize("room", [100, 20_000])
def test_a_full_disk(cli, tmp_path, room):
    arguments = list(map(str, ("run", "--dataset", "digits", "--methods", "uniform", *SMALL, "-o", "out")))
    command = [sys.executable, "-c", FULL, str(room), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert cli(*arguments, "-q") == (0, "", "")
