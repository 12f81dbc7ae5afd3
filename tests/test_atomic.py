import errno
import os
from pathlib import Path

import pytest

from prune4rel import atomic
from prune4rel.atomic import defuse, make_folder, put_aside, remove_dead, sync, undo_defuse, write_together, write_whole
from prune4rel.errors import InputError


def text(words):
    return lambda part: part.write_text(words)


def folder(words):
    def write(part):
        part.mkdir()
        (part / "a").write_text(words)
        (part / "b").mkdir()
        (part / "b" / "c").write_text(words)

    return write


@pytest.fixture
def watched(monkeypatch):
    """What is asked of the system, in order."""
    asked = []

    def watch(owner, name, what):
        real = getattr(owner, name)

        def told(*arguments, **options):
            asked.append((what, *(Path(each).name for each in arguments if isinstance(each, str | Path))))
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, told)

    watch(Path, "replace", "rename")
    watch(Path, "unlink", "remove")
    watch(atomic, "sync", "sync")
    return asked


@pytest.mark.parametrize("write", [text("new"), folder("new")])
def test_contents_are_on_the_disk_before_the_name_and_the_name_before_anything_else(tmp_path, watched, write):
    write_whole(tmp_path / "x", write)
    steps = [step for step in watched if step[0] != "remove"]
    (renamed,) = (place for place, step in enumerate(steps) if step[0] == "rename")
    assert steps[renamed][1:] == (steps[renamed - 1][1], "x")
    assert steps[-1] == ("sync", tmp_path.name)
    assert {step[0] for step in steps[:renamed]} == {"sync"}
    if (tmp_path / "x").is_dir():
        assert {step[1] for step in steps[:renamed]} >= {"a", "b", "c"}
    assert steps[renamed - 1][1].endswith(".part")


def test_the_marker_goes_first_and_comes_last(tmp_path, watched):
    files = {tmp_path / name: text("new") for name in ("scores", "manifest", "marker")}
    write_together(files)
    del watched[:]
    (tmp_path / "left").touch()
    write_together(files, force=True, gone=[tmp_path / "left"])
    renames = [step[1:] for step in watched if step[0] == "rename"]
    assert renames[0][0] == "marker"
    assert [after for _, after in renames[1:]] == ["scores", "manifest", "marker"]
    assert watched.index(("remove", "left")) < watched.index(("rename", *renames[1]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest", "marker", "scores"]


@pytest.mark.parametrize("call", ["rename", "fsync", "write"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("start", [text("old"), folder("old")])
def test_what_the_system_refuses_leaves_the_old_and_nothing_else(tmp_path, monkeypatch, call, number, start):
    write_whole(tmp_path / "x", start)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    if call == "write":
        write = refuse
    else:
        write = folder("new") if (tmp_path / "x").is_dir() else text("new")
        real = Path.replace
        first = []

        def once(self, target):
            if self.name.endswith(".part"):
                first.append(refuse())
            return real(self, target)

        monkeypatch.setattr(*((Path, "replace", once) if call == "rename" else (os, "fsync", refuse)))
    with pytest.raises(InputError, match=r"x: writing failed \(.+\); nothing was left behind"):
        write_whole(tmp_path / "x", write, force=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_file_system_that_cannot_sync_is_fine(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    write_whole(tmp_path / "x", text("new"))
    assert (tmp_path / "x").read_text() == "new"


def test_what_is_dead_goes_and_a_folder_that_was_moved_away_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_is_dead", lambda machine, process: machine in (None, atomic._HERE) and process != 1)
    for name in (".a.1.part", ".a.2.part", ".d.1.old"):
        (tmp_path / name).touch()
    for name in (".b.2.old", ".c.2.old", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inside").write_text(name)
    remove_dead(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.1.part", ".d.1.old", "b", "c"]
    assert (tmp_path / "c" / "inside").read_text() == "c"
    remove_dead(tmp_path / "absent")


def test_a_folder_with_those_it_lies_in(tmp_path, watched):
    make_folder(tmp_path / "a" / "b")
    assert watched == [("sync", tmp_path.name), ("sync", "a")]
    make_folder(tmp_path / "a")
    put_aside(tmp_path / "a")
    put_aside(tmp_path / "a")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="No such file"):
        sync(tmp_path / "a")


@pytest.mark.parametrize("words", ["=1+1", "+a", "-a", "+1+1", "@a", "\tx", "\rx", "'x", "''x", "cat", "", "a=b"])
def test_cells_come_back(words):
    assert undo_defuse(defuse(words)) == words
    assert not str(defuse(words)).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("number", ["+1", "-1", "-1.5", "1e-3"])
def test_numbers_written_as_text_are_no_formulas(number):
    assert undo_defuse(number) == defuse(number) == number
