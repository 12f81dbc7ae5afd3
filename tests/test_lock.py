import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from prune4rel import InputError
from prune4rel.lock import only_one

HOLD = """
import sys, time
from pathlib import Path
from prune4rel import lock
with lock.only_one(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""

WORK = """
import sys, time
from pathlib import Path
from prune4rel import lock
lock.join_workers(Path(sys.argv[1]))
print("joined", flush=True)
time.sleep(60)
"""


def test_one_at_a_time_in_one_process(tmp_path):
    words = rf"another process \(process {os.getpid()}\) is working there"
    with only_one(tmp_path), pytest.raises(InputError, match=words), only_one(tmp_path):
        pass
    with only_one(tmp_path):
        pass


def test_released_after_a_failure(tmp_path):
    with pytest.raises(KeyError), only_one(tmp_path):
        raise KeyError
    with only_one(tmp_path):
        pass


def test_another_process_is_named_and_lets_go_when_killed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "held\n"
            with pytest.raises(InputError, match=f"process {other.pid}"), only_one(tmp_path):
                pass
        finally:
            other.send_signal(signal.SIGKILL)
        other.wait()
        with only_one(tmp_path):
            pass


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(InputError, match="cannot write there"), only_one(tmp_path):
        pass


@pytest.mark.skipif(os.name == "nt", reason="workers are not counted there")
def test_workers_of_a_killed_process_are_waited_for(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WORK, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "joined\n"
        threading.Timer(0.3, other.kill).start()
        begin = time.monotonic()
        with only_one(tmp_path):
            assert time.monotonic() - begin > 0.25


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EWOULDBLOCK, "another process is working there"),
        (errno.ENOLCK, "its file system cannot lock"),
        (errno.EOPNOTSUPP, "its file system cannot lock"),
        (errno.EIO, r"cannot be locked \(Input/output error\)"),
    ],
)
def test_what_the_system_says_is_told(tmp_path, monkeypatch, number, words):
    def refuse(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("prune4rel.lock._take", refuse)
    (tmp_path / ".lock").write_bytes(b"\xff\x1b]0;title" if number == errno.EWOULDBLOCK else b"")
    with pytest.raises(InputError, match=words) as error, only_one(tmp_path):
        pass
    assert "\x1b" not in str(error.value)
