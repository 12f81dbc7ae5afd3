import json

import numpy as np
import pytest
from tests.cli.here import call


@pytest.fixture
def cli(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capsys, *arguments)


@pytest.fixture
def cleaned(cli, tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    given = np.where(np.arange(60) < 6, 1 - truth, truth)
    rows = [
        f"{i},{label},{' '.join(['red', 'hot', 'sun'] if t else ['blue', 'cold', 'sea'])} {i}"
        for i, (t, label) in enumerate(zip(truth, given, strict=True))
    ]
    (tmp_path / "texts.csv").write_text("\n".join(["id,label,text", *rows]))
    code, _, err = cli("clean", "texts.csv", "--encoder", "tfidf", "-o", "cleaned", "-q")
    assert code == 0, err
    return truth


def test_a_judged_table_comes_back_with_corrected_labels(cli, cleaned, tmp_path):
    code, out, err = cli("export", "cleaned", "--to", "csv", "-o", "better.csv")
    assert code == 0, err
    assert "60 of 60 examples, 6 with another label than the one given" in out
    lines = (tmp_path / "better.csv").read_text().splitlines()
    assert lines[0] == "id,text,label,given_label,label_score,is_label_issue,verified"
    assert [int(line.split(",")[2]) for line in lines[1:]] == cleaned.tolist()
    assert cli("export", "cleaned", "--to", "csv", "-o", "better.csv")[0] == 2
    assert cli("export", "cleaned", "--to", "csv", "-o", "better.csv", "--force", "--issues", "drop", "-q")[:2] == (
        0,
        "",
    )
    assert len((tmp_path / "better.csv").read_text().splitlines()) == 55


def test_forms_are_listed(cli):
    code, out, _ = cli("export", "--json")
    assert code == 0
    assert {"csv", "folder", "hf"} <= {one["name"] for one in json.loads(out)}
    assert "Images sorted by" in cli("export")[1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nowhere", "--to", "csv", "-o", "x.csv"), "holds no labels.parquet"),
        (("nowhere", "-o", "x.csv"), "--to"),
        (("nowhere", "--to", "csv"), "--output"),
        (("nowhere", "--to", "cvs", "-o", "x.csv"), "did you mean 'csv'"),
        (("nowhere", "--to", "csv", "--files", "copy", "-o", "x.csv"), "no option 'files'"),
    ],
)
def test_rubbish(cli, words, complaint, tmp_path):
    code, _, err = cli("export", *words)
    assert (code, complaint in err, err.count("\n")) == (2, True, 1)
    assert list(tmp_path.iterdir()) == []
