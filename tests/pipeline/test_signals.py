"""Told to end while its workers are at work: one sentence, the right exit code, nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import prune4rel

SOURCE = str(Path(prune4rel.__file__).parents[1])
LINE = (
    "run --dataset digits --network mlp --methods uniform,small-loss --ratios 0.5 --seeds 2 --epochs 5000 "
    "--warmup-epochs 1 --device cpu --parallel 2 -o run"
)
WAIT = 120


def members(group):
    """Processes of a group, this one's children and theirs."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(each.name))
    return found


def until(true):
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("name", "code", "everybody", "early"),
    [
        ("SIGTERM", 143, False, False),
        ("SIGHUP", 129, True, False),
        ("SIGINT", 130, True, True),
    ],
)
def test_ends_with_a_sentence_and_leaves_nobody_behind(tmp_path, name, code, everybody, early):
    number = getattr(signal, name)
    process = subprocess.Popen(
        [sys.executable, "-m", "prune4rel", *LINE.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # where tests run in the background some signals are passed over
        preexec_fn=lambda: [signal.signal(each, signal.SIG_DFL) for each in (signal.SIGINT, signal.SIGHUP)],  # noqa: PLW1509
    )
    try:
        workers = tmp_path / "run" / ".workers"
        until(lambda: len(members(process.pid)) > 3 or process.poll() is not None)  # a helper of Python's own is one
        if not early:
            until(lambda: workers.exists() or process.poll() is not None)
            time.sleep(1)
        assert process.poll() is None, process.stdout.read()
        (os.killpg if everybody else os.kill)(process.pid, number)
        said, _ = process.communicate(timeout=WAIT)
        assert process.returncode == code, said
        assert "Traceback" not in said
        assert said.count("error:") == 1, said
        assert name in said or "interrupted" in said
        until(lambda: not members(process.pid))
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
