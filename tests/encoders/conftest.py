import numpy as np
import pytest
from PIL import Image

from prune4rel.data import Split


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Keep every test's embeddings apart."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PRUNE4REL_CACHE", str(folder))
    return folder


@pytest.fixture
def pictures(tmp_path, rng):
    """A split of 20 image files of 12 x 10 pixels in two classes."""
    files = []
    for number in range(20):
        files.append(tmp_path / f"{number:02d}.png")
        Image.fromarray(rng.integers(0, 256, (10, 12, 3), dtype=np.uint8)).save(files[-1])
    ids = np.array([file.name for file in files])
    return Split(labels=np.arange(20) % 2, files=tuple(files), ids=ids)
