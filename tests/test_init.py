import subprocess
import sys

import pytest

import prune4rel


def test_public_names_are_there_and_listed():
    for name in prune4rel.__all__:
        assert getattr(prune4rel, name) is not None
        assert name in dir(prune4rel)


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'prune4rel' has no attribute 'prune'"):
        prune4rel.prune  # noqa: B018


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, prune4rel; print(*sorted({'numpy', 'torch', 'numba', 'pyarrow', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()
