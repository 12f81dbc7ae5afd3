import pytest
from tests.cli.here import call

SMALL = ("--network", "mlp", "--network-option", "width=8", "--epochs", 2, "--warmup-epochs", 1, "--device", "cpu")


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capsys, *arguments)


def test_several_runs_side_by_side(cli, tmp_path):
    for name in ("a", "b"):
        code, _, err = cli(
            "run", "--dataset", "digits", "--methods", "uniform", "--title", f"Run {name}", *SMALL, "-o", name, "-q"
        )
        assert code == 0, err
    code, out, err = cli("report", "a", "b", "--png", "figures")
    assert code == 0, err
    assert out == f"The report: {tmp_path / 'report.html'}\nThe figures: {tmp_path / 'figures'}\n"
    page = (tmp_path / "report.html").read_text()
    assert "Run a" in page
    assert "Run b" in page
    assert list((tmp_path / "figures").rglob("*.png"))
    code, _, err = cli("report", "a")
    assert code == 2
    assert "report.html: exists already" in err
    assert cli("report", "a", "--force", "--pdf", "figures")[0] == 0
    assert {path.stem for path in (tmp_path / "figures").glob("*.pdf")} >= {"map", "balance"}
    assert "Run b" not in (tmp_path / "report.html").read_text()


def test_what_is_no_run(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    for arguments, words in (
        (("empty",), "empty: holds no run"),
        (("nowhere",), "nowhere: holds no run"),
        (("empty", "-o", "missing/page.html"), "does not exist; make it first"),
    ):
        code, out, err = cli("report", *arguments)
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()
