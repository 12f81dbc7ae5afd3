"""The file of decisions: nothing that was acknowledged is lost, nobody is overwritten, damage is reported."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from prune4rel.decisions import ConflictError, Decision, DecisionLog, read_decisions, write_csv
from prune4rel.errors import InputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def label(index, name="cat", **more):
    return Decision(index=index, what="label", label=name, who="ann", **more)


def what_stands(log):
    return {index: each.label or each.what for index, each in log.standing.items()}


def test_comes_back_as_it_was_written(path):
    log = DecisionLog(path)
    odd = 'quo"te\n\u2028 <script> ,"check":"'
    log.append([label(3, odd, given="dog", id=odd, content="ab12"), Decision(index=4, what="remove", id=7)])
    again = DecisionLog(path)
    assert again.entries == log.entries
    assert again.standing[3].label == odd == again.standing[3].id
    assert again.standing[4].what == "remove"
    assert again.standing[4].who
    assert again.standing[4].when.endswith("+00:00")
    assert again.damage == []


def test_the_last_word_stands_and_undo_gives_back_what_stood_before(path):
    log = DecisionLog(path)
    first = log.append([label(1), label(2)])
    second = log.append([label(1, "dog")])
    assert what_stands(log) == {1: "dog", 2: "cat"}
    log.undo(second)
    assert what_stands(log) == {1: "cat", 2: "cat"}
    assert log.last_batch("ann") == first
    log.undo(first)
    log.undo(first)
    assert what_stands(log) == {} == what_stands(DecisionLog(path))
    assert log.last_batch("ann") is None
    assert len(path.read_bytes().splitlines()) == 5
    with pytest.raises(InputError, match="no batch 'x'"):
        log.undo("x")


@pytest.mark.parametrize("kept", [0, 1, 40, -2])
def test_a_cut_last_line_is_reported_and_the_good_part_kept(path, kept):
    log = DecisionLog(path)
    log.append([label(1)])
    good = path.read_bytes()
    log.append([label(2)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(good) + kept] if kept >= 0 else whole[:kept])
    cut = DecisionLog(path)
    assert what_stands(cut) == {1: "cat"}
    assert [each.line for each in cut.damage] == ([2] if kept else [1])
    cut.append([label(3)])
    after = DecisionLog(path)
    assert what_stands(after) == {1: "cat", 3: "cat"} == what_stands(cut)
    assert len(after.damage) == (1 if kept else 0)


@pytest.mark.parametrize("gone", [[0], [1], [3], [2, 3], [0, 1, 2, 3], "all"])
def test_lines_that_are_gone_are_told(path, gone):
    log = DecisionLog(path)
    for row in range(4):
        log.append([label(row)])
    assert DecisionLog(path).damage == []
    lines = path.read_bytes().splitlines(keepends=True)
    if gone == "all":
        path.unlink()
        gone = [0, 1, 2, 3]
    else:
        path.write_bytes(b"".join(line for k, line in enumerate(lines) if k not in gone))
    found = DecisionLog(path)
    assert set(what_stands(found)) == {0, 1, 2, 3} - set(gone)
    assert [each.reason for each in found.damage if " gone" in each.reason]
    found.append([label(7)])  # that is where it goes on
    again = DecisionLog(path)
    assert set(what_stands(again)) == {0, 1, 2, 3, 7} - set(gone)


@pytest.mark.parametrize("odd", ["pipe", "endless", "folder", "circle"])
def test_what_is_no_file_is_refused_and_not_waited_for(path, odd):
    {
        "pipe": lambda: os.mkfifo(path),
        "endless": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
        "circle": lambda: path.symlink_to(path.name),
    }[odd]()
    with pytest.raises(InputError, match=r"decisions\.jsonl: "):
        DecisionLog(path)


@pytest.mark.parametrize(
    "told",
    [
        {"index": 3, "what": "label", "label": ["cat"]},
        {"index": 3, "what": "label", "label": "cat", "id": {}},
        {"index": 3, "what": "label", "label": "cat", "who": 5},
        {"index": 1e30, "what": "label", "label": "cat"},
        {"index": 3, "what": ["label"], "label": "cat"},
        {"index": 3, "what": "label", "label": "cat", "batch": None},
        {"undoes": [1]},
        [],
        None,
    ],
    ids=repr,
)
def test_a_line_of_odd_values_is_left_out(path, told):
    body = json.dumps(told)
    text = body if not isinstance(told, dict) else body[:-1] + "}"
    check = hashlib.sha256(text.encode()).hexdigest()[:16]
    path.write_text(f'{text[:-1]},"check":"{check}"}}\n')
    log = DecisionLog(path)
    assert (log.entries, len(log.damage)) == ([], 1)


def test_a_damaged_line_in_the_middle_costs_only_itself(path):
    log = DecisionLog(path)
    for index in range(3):
        log.append([label(index)])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"cat", b"dog")
    path.write_bytes(b"".join(lines))
    log = DecisionLog(path)
    assert what_stands(log) == {0: "cat", 2: "cat"}
    assert str(log.damage[0]) == "line 2 is damaged: its checksum does not fit; it was left out"
    standing, notes = read_decisions(path)
    assert len(standing) == 2
    assert notes == (f"{path}: line 2 is damaged: its checksum does not fit; it was left out",)


def test_two_logs_see_each_other_and_never_overwrite_unseen(path):
    mine, yours = DecisionLog(path), DecisionLog(path)
    batch = mine.append([label(1)], expected={1: None})
    with pytest.raises(ConflictError, match="decided by ann: 'cat', after you had looked") as caught:
        yours.append([label(1, "dog"), label(2)], expected={1: None, 2: None})
    assert caught.value.now == {1: mine.decision_on(1)}
    assert what_stands(yours) == {1: "cat"}
    yours.append([label(1, "dog")], expected={1: batch})
    assert mine.refresh()
    assert what_stands(mine) == {1: "dog"}
    assert mine.rows_since(1) == [1]
    assert not mine.refresh()
    mine.undo(batch)
    with pytest.raises(ConflictError):
        yours.append([label(1, "owl")], expected={1: batch})
    with pytest.raises(ConflictError, match="was undone"):
        yours.append([label(7, "owl")], expected={7: batch})


WRITER = """
import sys
from prune4rel.decisions import Decision, DecisionLog
log = DecisionLog(sys.argv[1])
for number in range(int(sys.argv[3])):
    log.append([Decision(index=number, what="label", label=sys.argv[2], who=sys.argv[2])])
    print(number, flush=True)
"""


def test_writers_side_by_side_lose_nothing_and_nor_does_a_killed_one(path):
    start = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*start, who, "40"], stdout=subprocess.PIPE) for who in ("ann", "bob")]
    victim = subprocess.Popen([*start, "eve", "100000"], stdout=subprocess.PIPE)
    said = [victim.stdout.readline() for _ in range(10)]
    victim.kill()
    said += victim.communicate(timeout=60)[0].splitlines()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    found = DecisionLog(path)
    assert found.damage == []
    for who, count in (("ann", 40), ("bob", 40), ("eve", len([line for line in said if line.strip()]))):
        assert len([each for each in found.entries if each.who == who]) >= count


def test_a_full_disk_writes_nothing_and_says_so(path, monkeypatch):
    log = DecisionLog(path)
    log.append([label(1)])
    before = path.read_bytes()
    write = os.write

    def full(descriptor, data):
        if len(data) <= 60:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[:60])

    monkeypatch.setattr("prune4rel.decisions.log.os.write", full)
    with pytest.raises(InputError, match=r"writing failed \(No space left on device\); nothing was saved"):
        log.append([label(2)])
    assert path.read_bytes() == before
    assert what_stands(log) == {1: "cat"}
    monkeypatch.undo()
    log.append([label(2)])
    assert what_stands(DecisionLog(path)) == {1: "cat", 2: "cat"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    log = DecisionLog(tmp_path / "nowhere" / "decisions.jsonl")
    with pytest.raises(InputError, match=r"nowhere/decisions\.jsonl: cannot be written"):
        log.append([label(1)])
    with pytest.raises(InputError, match="no such file"):
        read_decisions(tmp_path)


@pytest.mark.parametrize("data", [b"\x00\xff\n\n{}\n", b"PK\x03\x04", b'{"index":1}\n', b"a,b\n"])
def test_rubbish_is_no_decision(path, data):
    path.write_bytes(data)
    with pytest.raises(InputError, match="holds no decision"):
        read_decisions(path)


def test_csv_there_and_back(path, tmp_path):
    log = DecisionLog(path)
    log.append([label(1, "=a, b", given="dog", content="ff"), Decision(index=2, what="unsure", id="x")])
    assert [each.index for each in read_decisions(path)[0]] == [1, 2]
    standing, _ = read_decisions(path)
    write_csv(standing, tmp_path / "out.csv")
    assert '"\'=a, b"' in (tmp_path / "out.csv").read_text()
    back, notes = read_decisions(tmp_path / "out.csv")
    assert notes == ()
    assert back == [replace(each, batch="") for each in standing]


def test_a_csv_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "\ufeffid,label,decision,given\nx,cat,,\ny,,remove,\nz,,,dog\nw,,keep,dog\nv,,keep,\n", encoding="utf-8"
    )
    found, _ = read_decisions(path)
    assert [(each.id, each.what, each.label) for each in found] == [
        ("x", "label", "cat"),
        ("y", "remove", None),
        ("w", "label", "dog"),
        ("v", "label", None),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n", "needs index or id"),
        ("index,decision\n1,remoov\n", "row 1: unknown decision 'remoov'; did you mean 'remove'"),
        ("index,decision\n1,label\n", "decides a label, but names none"),
        ("index,label\none,cat\n", "index must be a whole number, not 'one'"),
        ("index,label\n\xff", "not a readable CSV in UTF-8"),
    ],
)
def test_a_csv_that_cannot_be_used(tmp_path, text, reason):
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=reason):
        read_decisions(path)


def test_rows_are_those_of_the_table_at_hand(path):
    """Two examples that had one row number at different times stay two."""
    DecisionLog(path).append([label(0, "cat", id="x")])
    DecisionLog(path).append([label(0, "dog", id="y")])
    where = {"y": 5}

    def row_of(decision):
        if decision.id not in where:
            raise InputError(f"no example is called {decision.id!r}")
        return where[decision.id]

    log = DecisionLog(path, row_of)
    assert what_stands(log) == {5: "dog"}
    assert log.rows_since(0) == [5]
    assert log.refused == ("1 decision: no example is called 'x'",)
    assert [each.id for each in read_decisions(path)[0]] == ["x", "y"]


def test_another_file_in_its_place_is_read_from_its_beginning(path, tmp_path):
    log = DecisionLog(path)
    log.append([Decision(index=1, what="remove", who="ann")])
    other = DecisionLog(tmp_path / "other.jsonl")
    other.append([Decision(index=2, what="remove", who="ann")])
    assert other.path.stat().st_size == path.stat().st_size
    other.path.replace(path)
    assert log.refresh()
    assert list(log.standing) == [2]
    path.unlink()
    assert log.refresh()
    assert log.standing == {}
    assert not log.refresh()
    log.append([Decision(index=3, what="remove", who="ann")])
    assert list(log.standing) == [3]
