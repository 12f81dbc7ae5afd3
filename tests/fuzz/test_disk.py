"""A disk that fails at any call, or loses its power at any moment: what is half-written never counts."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SECONDS = int(os.environ.get("PRUNE4REL_FUZZ_SECONDS", "0"))
SEED = os.environ.get("PRUNE4REL_FUZZ_SEED", "0")
CASES = 10**9 if SECONDS else 1
"""Of each kind with each command; as many as the time allows with `make fuzz`."""


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="needs Linux")
def test_a_disk_that_fails_or_loses_its_power_leaves_nothing_half_written_and_stops_nobody(tmp_path):
    kinds, more = "power", {}
    if (compiler := shutil.which("cc")) is not None:
        library = tmp_path / "faults.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "faults.c", "-ldl"], check=True)
        kinds, more = "faults,power", {"LD_PRELOAD": str(library)}
    line = [sys.executable, "-m", "tests.fuzz.driver", kinds, tmp_path, CASES, SECONDS or 300, SEED]
    done = subprocess.run(
        [str(word) for word in line],
        cwd=HERE.parents[1],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=900 + 4 * SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr[-3000:]
