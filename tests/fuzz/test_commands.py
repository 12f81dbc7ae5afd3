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
from tests.fuzz.test_readers import FUZZ

from prune4rel import cli

SECONDS = float(os.environ.get("PRUNE4REL_FUZZ_SECONDS", "20"))
PATIENCE = 8
"""Seconds after which a command is interrupted, as it may well have been asked for more work than that."""

AT_WORK = ("training", "pipeline", "methods", "neighbours", "judging", "encoders", "inference", "noise.py", "doctor.py")
"""Where a command may be after that time; anywhere else it hangs."""


class TookLongError(BaseException):
    pass


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("line")
    make_files(home)
    return home


def prints(home):
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.name not in (".lock",):
            found[str(path.relative_to(home))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def ask(words, monkeypatch):
    """Return the exit code and what was said; how long it takes is looked at, too."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    err = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "argv", ["prune4rel", *words])
    stack = []

    def too_long(_, frame):
        while frame is not None:
            stack.append(frame.f_code.co_filename)
            frame = frame.f_back
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(PATIENCE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(SystemExit) as end:
                cli.main()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    code = end.value.code
    said = [each.buffer.getvalue().decode("ascii", "replace") for each in (out, err) if each.flush() is None]
    if stack:
        work = [Path(name).relative_to(Path(cli.__file__).parents[1]).parts[0] for name in stack if "prune4rel/" in name and "src/" in name]
        assert set(work) & set(AT_WORK), f"hangs in {stack}"
        return cli.INTERRUPTED, *said
    return code or 0, *said


@pytest.mark.skipif(os.name == "nt", reason="time is told by a signal")
def test_no_line_ends_in_a_traceback_or_harms_what_is_there(place, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr("prune4rel.cli.review._serve", lambda *_, **__: None)
    flags, whole, end = verbs(), prints(place), time.monotonic() + SECONDS

    @FUZZ
    @given(st.integers(0, 2**63))
    def check(seed):
        nonlocal end
        if time.monotonic() > end:
            return
        words = line(Random(seed), flags)  # noqa: S311 - nothing secret
        home = tmp_path / "deep" / "in" / "here"
        shutil.rmtree(tmp_path / "deep", ignore_errors=True)
        home.parent.mkdir(parents=True)
        shutil.copytree(place, home, symlinks=True, ignore=shutil.ignore_patterns("pipe"))
        os.mkfifo(home / "pipe")
        monkeypatch.chdir(home)
        try:
            code, _, err = ask(words, monkeypatch)
            told = f"{words}\n{code}\n{err}"
            assert code in (0, 2, cli.INTERRUPTED), told
            assert "Traceback" not in err, told
            assert all(each.isprintable() for each in err.split("\n")), told
            assert code != 2 or err.strip(), told
            left = [path for path in tmp_path.rglob(".*") if path.name.endswith((".part", ".old"))]
            assert not left, f"{told}\n{left}"
            if "--force" not in words and "--restart" not in words:
                now = prints(home)
                changed = [name for name in whole if now.get(name) != whole[name]]
                assert not changed, f"{told}\n{changed}"
        except BaseException:
            end = float("inf")  # the same again has to fail again
            raise

    check()
