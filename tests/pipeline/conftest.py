import shutil

import pytest
from tests.pipeline.tiny import tiny

from prune4rel.pipeline import run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run that is done; not to be changed."""
    home = tmp_path_factory.mktemp("finished") / "run"
    run(tiny(everything=True), home)
    return home


@pytest.fixture
def home(finished, tmp_path):
    """A copy of it, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")
