"""Whatever is asked of the command line: it works, or says in a line or two why not, and harms nothing."""

import contextlib
import hashlib
import io
import os
import shutil
import signal
import sys
import time
import warnings
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.commands import line, make_files, verbs
from tests.fuzz.strange import content
from tests.fuzz.test_readers import FUZZ

from prune4rel import cli

SECONDS = float(os.environ.get("PRUNE4REL_FUZZ_SECONDS", "12"))
PATIENCE, WALL = 8, 120
"""Seconds of work, and of time, after which a command is interrupted; it may have been asked for more than that."""

AT_WORK = ("training", "pipeline", "methods", "neighbours", "judging", "encoders", "inference", "report", "recipes")
"""Where a command may be after that time; anywhere else it hangs."""


HOME = Path(cli.__file__).parents[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("line")
    make_files(home)
    return home


def prints(home):
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.name != ".lock":
            found[str(path.relative_to(home))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def rooms_of(frame):
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if HOME in path.parents:
            yield path.relative_to(HOME).parts[0]
        frame = frame.f_back


def ask(words, monkeypatch):
    """Return the exit code and what was said; a command at work is interrupted after a while, any other must end."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    err = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "argv", ["prune4rel", *words])
    at = []

    def too_long(_, frame):
        at.extend(rooms_of(frame))
        raise KeyboardInterrupt

    before = [signal.signal(number, too_long) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    signal.alarm(WALL)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(SystemExit) as end:
                cli.main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)
    said = [each.buffer.getvalue().decode("ascii", "replace") for each in (out, err) if each.flush() is None]
    assert not at or set(at) & set(AT_WORK), f"hangs in {at}"
    return end.value.code or 0, *said


def make_strange(home, words, random):
    """Put something strange in the place of files that a line names."""
    named = [home / word for word in words if len(word) < 50 and "\0" not in word and (home / word).exists()]
    files = [path for each in named for path in (sorted(each.rglob("*")) if each.is_dir() else [each])]
    for path in files:
        if path.is_file() and (found := content(path.name, random)) is not None and random.random() < 0.5:
            path.write_bytes(found)


def attack(words, place, home, monkeypatch, random):
    """Run a line in a copy of a folder of files; nothing may come of it that should not."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(place, home, symlinks=True, ignore=shutil.ignore_patterns("pipe"))
    os.mkfifo(home / "pipe")
    monkeypatch.chdir(home)
    if random.random() < 0.6:
        make_strange(home, words, random)
    whole = prints(home)
    code, _, err = ask(words, monkeypatch)
    told = f"{words}\n{code}\n{err}"
    assert code in (0, 2, cli.INTERRUPTED), told
    assert "Traceback" not in err, told
    assert all(each.isprintable() for each in err.split("\n")), told
    assert code != 2 or err.strip(), told
    left = [path for path in home.parent.rglob(".*") if path.name.endswith((".part", ".old"))]
    assert not left, f"{told}\n{left}"
    if "--force" not in words and "--restart" not in words:
        now = prints(home)
        changed = [name for name in whole if now.get(name) != whole[name]]
        assert not changed, f"{told}\n{changed}"


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr("prune4rel.cli.review._serve", lambda *_, **__: None)
    return monkeypatch


@pytest.mark.skipif(os.name == "nt", reason="time is told by a signal")
def test_no_line_ends_in_a_traceback_or_harms_what_is_there(place, tmp_path, quiet):
    flags, end = verbs(), time.process_time() + SECONDS
    (tmp_path / "deep").mkdir()

    @FUZZ
    @given(st.integers(0, 2**63))
    def check(seed):
        nonlocal end
        if time.process_time() < end:
            try:
                random = Random(seed)  # noqa: S311 - no secret
                attack(line(random, flags), place, tmp_path / "deep" / "here", quiet, random)
            except BaseException:
                end = float("inf")  # the same again has to fail again
                raise

    check()
