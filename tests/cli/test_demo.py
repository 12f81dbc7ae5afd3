import pytest
from tests.cli.here import call

from prune4rel import machine
from prune4rel.cli import demo
from prune4rel.methods.prune4rel import PRESETS


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capsys, *arguments)


def test_it_compares_what_it_should():
    assert demo.METHODS[0] == "uniform"
    assert {f"prune4rel/{preset}" for preset in PRESETS if preset != "paper"} | {"small-loss"} <= set(demo.METHODS)


def test_a_small_one(cli, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "METHODS", ("uniform", "small-loss"))
    monkeypatch.setattr(machine, "threads", lambda: 1)
    code, out, err = cli("demo", "--ratio", 0.05, "--seeds", 1, "-o", "small")
    assert code == 0, err
    assert "40% of the training labels are moved to the next class" in out
    assert "One seed." in out
    for words in ("sop+", "cross-entropy", "uniform", "small-loss", "noise"):
        assert words in out
    assert f"The report: {tmp_path / 'small' / 'report.html'}" in out
    assert (tmp_path / "small" / "report.html").exists()


def test_rubbish(cli, tmp_path):
    for arguments, words in (
        (("--ratio", 2), "ratios: each must be above 0"),
        (("--noise", 2), "must lie between 0 and 1"),
        (("--seeds", 0), "seeds: must be"),
        (("-o", "missing/demo"), "does not exist; make it first"),
    ):
        code, _, err = cli("demo", *arguments)
        assert code == 2
        assert words in err
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
