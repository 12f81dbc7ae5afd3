import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix, save_npz
from tests.cli.here import call

import prune4rel as p4r
from prune4rel.labels import Labels

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, 180)
ROWS = (4 * np.eye(3, 8)[TRUTH] + 0.4 * RNG.normal(size=(180, 8))).astype(np.float32)
LABELS = np.where(np.arange(180) < 18, (TRUTH + 1) % 3, TRUTH)


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The command line, in a folder with arrays."""
    monkeypatch.chdir(tmp_path)
    np.save("E.npy", ROWS)
    np.save("y.npy", LABELS)
    np.save("P.npy", 0.05 + 0.85 * np.eye(3)[TRUTH])
    save_npz("sparse.npz", csr_matrix(np.where(np.abs(ROWS) > 1, ROWS, 0)))
    return lambda *words: call(monkeypatch, capsys, *words)


def test_the_folder_and_the_summary(command, tmp_path):
    code, out, err = command("clean", "--embeddings", "E.npy", "--labels", "y.npy", "-o", "cleaned")
    assert code == 0, err
    assert "18 of 180 labels (10.0%); for 18 of them another is likelier" in out
    assert "prune4rel review cleaned" in out
    assert "180 labels, 3 classes: about" in err
    labels = p4r.Labels.load("cleaned/labels.parquet")
    assert np.flatnonzero(labels.is_label_issue).tolist() == list(range(18))
    source = json.loads((tmp_path / "cleaned/source.json").read_text())
    assert source["dataset"] is None
    assert source["files"]["embeddings"] == str(tmp_path / "E.npy")
    page = (tmp_path / "cleaned/report.html").read_text()
    assert "prune4rel review cleaned" in page
    assert "Which class is taken for which" in page


def test_what_it_wrote_goes_on(command):
    assert command("clean", "--embeddings", "E.npy", "--labels", "y.npy", "-o", "cleaned", "-q")[:2] == (0, "")
    command("select", "--signals", "cleaned/signals", "--size", "30", "-o", "subset.parquet", "-q")
    assert not (pq.read_table("subset.parquet")["index"].to_numpy() < 18).any()
    assert len(p4r.load_dataset("arrays", "cleaned/signals").train) == 180


def test_a_source_of_arrays_can_be_opened_again(command, tmp_path):
    np.savez(
        "mine.npz", features=ROWS, labels=LABELS, clean_labels=TRUTH, test_features=ROWS[:3], test_labels=TRUTH[:3]
    )
    code, out, err = command("clean", "mine.npz", "-o", "cleaned")
    assert code == 0, err
    assert "3 training examples lie in the test split, too" in " ".join(out.split())
    source = json.loads((tmp_path / "cleaned/source.json").read_text())
    again = p4r.load_dataset(source["dataset"], source["data"], **source["options"])
    assert len(again.train) == 180
    assert "are right" in (tmp_path / "cleaned/report.html").read_text()


def test_pictures_are_encoded_first(command):
    code, out, err = command(
        "clean",
        "--dataset",
        "digits",
        "--encoder",
        "tests.encoders.own:colours",
        "--size",
        4,
        "--no-cache",
        "-o",
        "cleaned",
    )
    assert (code, "suspicious" in out) == (0, True), err


@pytest.mark.parametrize(
    "words",
    [
        ["--embeddings", "sparse.npz", "--labels", "y.npy"],
        ["--probabilities", "P.npy", "--labels", "y.npy"],
        ["--embeddings", "E.npy", "--probabilities", "P.npy", "--labels", "y.npy"],
        ["--embeddings", "E.npy", "--labels", "names.csv"],
    ],
    ids=["sparse", "probabilities", "both", "csv"],
)
def test_every_kind_of_input(command, words, tmp_path):
    (tmp_path / "names.csv").write_text("label\n" + "\n".join("abc"[label] for label in LABELS))
    code, _, err = command("clean", *words, "-o", "cleaned")
    assert code == 0, err
    assert p4r.Labels.load("cleaned/labels.csv").is_label_issue[:18].all()


def test_votes_and_decisions(command, tmp_path):
    votes = [f"{row},{who},{'abc'[LABELS[row]]}" for row in range(180) for who in ("ann", "bob")]
    (tmp_path / "votes.csv").write_text("example,annotator,label\n" + "\n".join(votes))
    (tmp_path / "done.csv").write_text(f"index,label\n0,{'abc'[TRUTH[0]]}\n")
    words = ["--embeddings", "E.npy", "--votes", "votes.csv", "--decisions", "done.csv"]
    code, out, err = command("clean", *words, "-o", "cleaned")
    assert code == 0, err
    assert "1 labels settled" in err
    assert "annotators" in out
    assert pq.read_table("cleaned/annotators.parquet").num_rows == 2
    assert p4r.Labels.load("cleaned/labels.parquet").corrected_label[0] == TRUTH[0]


def test_a_dry_run_writes_nothing(command, tmp_path):
    before = {path.name for path in tmp_path.iterdir()}
    code, out, _ = command("clean", "--embeddings", "E.npy", "--labels", "y.npy", "--dry-run")
    assert code == 0
    assert "180 labels, 3 classes: about" in out
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_folder_is_replaced_by_force_and_decisions_stay(command, tmp_path):
    words = ["clean", "--embeddings", "E.npy", "--labels", "y.npy", "-o", "cleaned"]
    command(*words)
    (tmp_path / "cleaned/decisions.jsonl").write_text("")
    code, _, err = command(*words)
    assert code == 2
    assert "exists already" in err
    code, _, err = command(*words, "--force")
    assert code == 0
    assert "decisions.jsonl was not used; add --decisions" in err
    assert (tmp_path / "cleaned/decisions.jsonl").exists()


def test_decisions_follow_their_example_and_not_one_that_has_changed(command, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    texts = [f"text {row} about {('cats', 'dogs')[label]}" for row, label in enumerate(truth)]
    rows = 4 * np.eye(8)[truth] + rng.normal(size=(60, 8))

    def write(order):
        table = "".join(f"{texts[row]},{('cat', 'dog')[truth[row]]}\n" for row in order)
        (tmp_path / "texts.csv").write_text(f"text,label\n{table}")
        np.save(tmp_path / "rows.npy", rows[order])

    words = ["clean", "texts.csv", "--embeddings", "rows.npy", "-o", "cleaned", "--force"]
    write(np.arange(60))
    assert command(*words)[0] == 0
    (tmp_path / "made.csv").write_text("index,decision,label\n3,label,cat\n5,remove,\n8,keep,\n99,keep,\n4,label,cow\n")
    code, _, err = command("review", "cleaned/labels.parquet", "--import", "made.csv")
    assert code == 0
    assert "there is no row 99 among 60" in err
    assert "'cow' is no class here" in err
    assert len((tmp_path / "cleaned/decisions.jsonl").read_bytes().splitlines()) == 3
    (tmp_path / "none.csv").write_text("index,decision\n99,keep\n")
    assert command("review", "cleaned", "--import", "none.csv")[0] == 2
    texts[8] += " and one more"
    write(np.arange(60)[::-1])
    code, _, err = command(*words, "--decisions", "cleaned/decisions.jsonl")
    assert (code, "1 label settled" in err or "1 labels settled" in err) == (0, True), err
    assert "example 8 has changed since it was decided" in err
    labels = Labels.load(tmp_path / "cleaned/labels.parquet")
    assert np.flatnonzero(labels.verified).tolist() == [56]
    assert np.flatnonzero(labels.removed).tolist() == [54]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--embeddings", "E.npy", "--labels", "y.npy"], "say where everything should go"),
        (["--embeddings", "E.npy", "-o", "out"], "no labels"),
        (["--labels", "y.npy", "-o", "out"], "nothing to judge labels by"),
        (["--embeddings", "none.npy", "--labels", "y.npy", "-o", "out"], "none.npy: no such file"),
        (["--embeddings", "E.npy", "--labels", "E.npy", "-o", "out"], "E.npy: labels"),
        (["--embeddings", "bad.npy", "--labels", "y.npy", "-o", "out"], "bad.npy: embeddings: row 7 holds NaN"),
        (["--option", "a=1", "-o", "out"], "--option and columns are for data sets"),
        (["nothing", "-o", "out"], "nothing: no such file or folder"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_left(command, words, complaint, tmp_path):
    np.save("bad.npy", np.where(np.arange(180)[:, None] == 7, np.nan, ROWS))
    code, _, err = command("clean", *words)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_broken_rows_can_be_left_out(command):
    np.save("bad.npy", np.where(np.arange(180)[:, None] == 30, np.nan, ROWS))
    code, out, _ = command("clean", "--embeddings", "bad.npy", "--labels", "y.npy", "-o", "out", "--skip-broken")
    assert code == 0
    assert "1 rows hold NaN or infinity and were left out: 30." in " ".join(out.split())


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_arrays_in_parts_and_labels_as_text(command, tmp_path, form):
    (tmp_path / "parts").mkdir()
    for k, rows in enumerate(np.array_split(ROWS, 3)):
        if form == "npy":
            np.save(tmp_path / "parts" / f"part-{k}.npy", rows)
        else:
            column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
            pq.write_table(pa.table({"embeddings": column}), tmp_path / "parts" / f"part-{k}.parquet")
    (tmp_path / "y.txt").write_text("\n".join(map(str, LABELS)))
    np.savetxt(tmp_path / "P.csv", np.load("P.npy"), delimiter=",")
    code, out, err = command("clean", "--embeddings", "parts", "--labels", "y.txt", "-o", "cleaned")
    assert code == 0, err
    assert "18 of 180 labels" in out
    words = ("--probabilities", "P.csv", "--labels", "y.txt", "--size", 9, "-o")
    assert command("select", "--embeddings", "parts", *words, "parts.npy", "-q")[0] == 0
    assert command("select", "--embeddings", "E.npy", *words, "whole.npy", "-q")[0] == 0
    assert np.load("parts.npy").tolist() == np.load("whole.npy").tolist()
