"""A disk that fails at any call, or loses its power at any moment: what is half-written never counts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = float(os.environ.get("PRUNE4REL_FUZZ_SECONDS", "15"))
SEED = os.environ.get("PRUNE4REL_FUZZ_SEED", "0")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="needs Linux")


def drive(kind, folder, **more):
    line = [sys.executable, "-m", "tests.fuzz.driver", kind, str(folder), str(SECONDS), SEED]
    environment = {**os.environ, **more}
    done = subprocess.run(
        line,
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600 + 2 * SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr[-3000:]


def test_a_power_cut_leaves_what_was_finished_and_nothing_that_stops_what_was_not(tmp_path):
    drive("power", tmp_path)


def test_a_call_that_fails_ends_in_one_line_and_the_next_command_goes_on(tmp_path):
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    library = tmp_path / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    drive("faults", tmp_path, LD_PRELOAD=str(library))
