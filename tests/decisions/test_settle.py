"""What decisions come to: by id and content, refused where the example changed, certain where it did not."""

from dataclasses import replace

import numpy as np
import pytest

import prune4rel as p4r
from prune4rel.decisions import Decision, DecisionLog, settle, settle_signals
from prune4rel.encoders.cache import Digests
from prune4rel.errors import InputError
from prune4rel.steps.data import open_examples

NAMES = ("cat", "dog", "owl")


def label(index, name, **more):
    return Decision(index=index, what="label", label=name, **more)


def test_the_last_decision_on_an_example_wins():
    asked = [label(0, "cat"), label(1, "owl"), Decision(index=0, what="remove"), Decision(index=2, what="unsure")]
    found = settle([*asked, label(3, "dog")], 5, NAMES)
    assert found.decided_label.tolist() == [-1, 2, -1, 1, -1]
    assert found.verified.tolist() == [False, True, False, True, False]
    assert found.removed.tolist() == [True, False, False, False, False]
    assert found.unsure.tolist() == [False, False, True, False, False]
    assert found.summary == "2 labels settled, 1 examples removed, 1 that nobody could tell"


def test_an_example_is_found_again_where_rows_have_moved():
    content = np.array(["c0", "c1", "c2"])
    moved = content[::-1]
    ids = np.array(["x", "y", "z"])
    by_content = settle([label(0, "owl", content="c0")], 3, NAMES, content=moved)
    assert by_content.decided_label.tolist() == [-1, -1, 2]
    by_id = settle([label(0, "owl", id="x", content="c0")], 3, NAMES, ids=ids[::-1], content=moved)
    assert by_id.decided_label.tolist() == [-1, -1, 2]
    shorter = settle([label(2, "owl", content="c2")], 1, NAMES, content=moved[:1])
    assert shorter.decided_label.tolist() == [2]


@pytest.mark.parametrize(
    ("decision", "reason"),
    [
        (label(0, "cat", id="x", content="other"), "example 'x' has changed since it was decided"),
        (label(0, "cat", content="other"), "example 0 has changed since it was decided"),
        (label(9, "cat", content="other"), "example 9 has changed since it was decided"),
        (label(0, "cat", id="gone"), "no example is called 'gone'"),
        (label(9, "cat"), "there is no row 9 among 2"),
        (label(1, "cats"), "'cats' is no class here; did you mean 'cat'"),
        (label(0, "dog", given="owl"), "example 0 was given 'owl' when it was decided and is not now"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(decision, reason):
    found = settle(
        [decision, decision],
        2,
        NAMES,
        given_label=np.array([0, 1]),
        ids=np.array(["x", "y"]),
        content=np.array(["a", "b"]),
    )
    assert not found.verified.any()
    assert len(found.refused) == 1
    assert found.refused[0].startswith("2 decisions: ")
    assert reason in found.refused[0]


def test_refusals_of_one_kind_are_one_line():
    gone = [Decision(index=0, id=f"x{number}", what="remove") for number in [*range(6), 0]]
    found = settle([*gone, label(7, "cat"), label(1, "cats")], 2, NAMES, ids=np.array(["a", "b"]))
    assert found.refused == (
        "7 decisions: no example is called 'x0'; likewise 'x1', 'x2', 'x3' and 2 more",
        "1 decision: there is no row 7 among 2",
        "1 decision: 'cats' is no class here; did you mean 'cat'? Known: cat, dog, owl",
    )


def test_what_is_kept_has_the_label_it_was_given():
    found = settle([label(1, None)], 2, NAMES, given_label=np.array([0, 2]))
    assert found.decided_label.tolist() == [-1, 2]
    assert "add the column label or given" in settle([label(1, None)], 2, NAMES).refused[0]


def test_a_name_without_names_and_a_class_without_classes():
    assert "by name" in settle([Decision(index=-1, id="x", what="remove")], 2).refused[0]
    assert "is no number" in settle([label(0, "cat")], 2).refused[0]
    assert settle([label(0, "1")], 2).decided_label.tolist() == [1, -1]


def test_ids_are_the_same_as_numbers_and_as_text():
    assert settle([label(0, "dog", id="12")], 2, NAMES, ids=np.array([11, 12])).decided_label.tolist() == [-1, 1]
    assert settle([label(0, "dog", id=12)], 2, NAMES, ids=np.array(["11", "12"])).decided_label.tolist() == [-1, 1]


def test_settled_labels_are_certain_and_removed_examples_not_picked(small):
    signals = p4r.Signals(**small, losses=np.arange(30.0))
    asked = [label(index, str((index + 1) % 3)) for index in range(0, 30, 5)] + [
        Decision(index=index, what="remove") for index in (1, 2)
    ]
    settled = settle(asked, 30)
    after = settle_signals(signals, settled)
    for index in range(0, 30, 5):
        assert after.labels[index] == (index + 1) % 3
        assert after.probabilities[index].tolist() == np.eye(3)[(index + 1) % 3].tolist()
        assert after.losses[index] == 0
    assert np.flatnonzero(after.verified).tolist() == list(range(0, 30, 5))
    assert signals.labels.tolist() == (np.arange(30) % 3).tolist()
    for method in ("prune4rel", "uniform", "small-loss", "margin"):
        picked = p4r.select(method, signals=after, size=28).indices
        assert sorted(picked) == [index for index in range(30) if index not in (1, 2)]
    first = p4r.select("small-loss", signals=after, size=6).indices
    assert set(first) == set(range(0, 30, 5))


def test_removed_ones_stay_unknown_where_some_could_not_be_read(small):
    known = np.ones(30, dtype=bool)
    known[4] = False
    after = settle_signals(
        p4r.Signals(**small, known=known, verified=~known), settle([Decision(index=3, what="remove")], 30)
    )
    assert np.flatnonzero(~after.known).tolist() == [3, 4]
    assert after.verified[4]


def test_decisions_for_another_set_are_refused(small):
    with pytest.raises(InputError, match="for 3 examples, but the signals have 30"):
        settle_signals(p4r.Signals(**small), settle([], 3))
    with pytest.raises(InputError, match="decided label 5 is no class"):
        settle_signals(p4r.Signals(**small), settle([label(0, "5")], 30))


def test_what_changed_is_refused_by_run_and_select_too(tmp_path):
    from prune4rel.cli.select import _settled
    from prune4rel.labels import Labels
    from prune4rel.steps.data import DataOptions, read_settled

    def texts(path, *last):
        rows = [f"{name},{text},cat" for name, text in zip("abc", ("one", "two", *last), strict=True)]
        path.write_text("\n".join(["id,text,label", *rows, "d,four,dog"]), encoding="utf-8")

    texts(tmp_path / "then.csv", "three")
    texts(tmp_path / "now.csv", "thirty")
    then, now = (DataOptions(dataset="table", data=str(tmp_path / name)) for name in ("then.csv", "now.csv"))
    digests = np.array(Digests(open_examples(then).train))
    decided = [label(at, "dog", id=name, content=digests[at]) for at, name in enumerate("abc")]
    DecisionLog(tmp_path / "decisions.jsonl").append(decided)
    for options, settled in ((then, 3), (now, 2)):
        found = read_settled(replace(options, decisions=str(tmp_path / "decisions.jsonl")))
        assert found.verified.sum() == settled
        assert found.refused == ("1 decision: example 'c' has changed since it was decided",) * (settled == 2)

    digests[2] = "other"
    signals = p4r.Signals(labels=[0, 0, 0, 1], ids=np.array(list("abcd")), class_names=("cat", "dog"))
    (tmp_path / "cleaned").mkdir()
    signals.save(tmp_path / "cleaned" / "signals")
    judged = {"predicted_label": [0, 0, 0, 1], "label_score": [1.0] * 4, "confidence": [1.0] * 4}
    Labels(
        given_label=[0, 0, 0, 1], is_label_issue=[False] * 4, class_names=("cat", "dog"), content=digests, **judged
    ).save(tmp_path / "cleaned" / "labels.parquet")
    after = _settled(signals, tmp_path / "decisions.jsonl", tmp_path / "cleaned" / "signals", quiet=True)
    assert after.verified.tolist() == [True, True, False, False]


def test_select_takes_decisions(tmp_path, small):
    import json
    import subprocess
    import sys

    signals = p4r.Signals(**small, class_names=NAMES)
    signals.save(tmp_path / "signals")
    (tmp_path / "mine.csv").write_text("index,decision,label\n0,label,owl\n1,remove,\n2,label,cow\n", encoding="utf-8")
    command = [sys.executable, "-m", "prune4rel", "select", "--signals", "signals", "--size", "29", "-o", "s.parquet"]
    done = subprocess.run(
        [*command, "--decisions", "mine.csv"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "decisions: 1 labels settled, 1 examples removed" in done.stderr
    assert "note: 1 decision: 'cow' is no class here; did you mean 'owl'?" in done.stderr
    chosen = p4r.Selection.load(tmp_path / "s.parquet")
    assert sorted(chosen.indices) == [0, *range(2, 30)]
    assert chosen.labels[chosen.indices == 0] == 2
    assert json.loads((tmp_path / "s.json").read_text())["n"] == 30
    (tmp_path / "other.csv").write_text("index,decision\n999,remove\n", encoding="utf-8")
    done = subprocess.run(
        [*command, "--force", "--decisions", "other.csv"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "none of its decisions is about these examples" in done.stderr
