import hashlib
import threading

import numpy as np
import pytest

from prune4rel import provenance
from prune4rel._version import __version__
from prune4rel.provenance import Fingerprints, fingerprint, versions


def test_fingerprint_is_the_sha256_of_type_shape_and_bytes(rng):
    array = rng.normal(size=(7, 3)).astype(np.float32)
    assert fingerprint(array) == hashlib.sha256(b"<f4 (7, 3)" + array.tobytes()).hexdigest()


def test_fingerprint_does_not_depend_on_layout_or_place(rng, tmp_path):
    array = rng.normal(size=(50, 3))
    np.save(tmp_path / "a.npy", array)
    for same in (
        np.asfortranarray(array),
        np.load(tmp_path / "a.npy", mmap_mode="r"),
        np.repeat(array, 2, axis=0)[::2],
    ):
        assert fingerprint(same) == fingerprint(array)


def test_fingerprint_of_many_blocks_is_that_of_the_whole():
    array = np.arange(5_000_000, dtype=np.float64)
    assert fingerprint(array) == hashlib.sha256(b"<f8 (5000000,)" + array.tobytes()).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        np.array([[1, 2], [3, 5]]),
        np.array([[1, 2], [3, 4]], dtype=np.int32),
        np.array([1, 2, 3, 4]),
        np.array(["1", "2"]),
    ],
    ids=["value", "type", "shape", "words"],
)
def test_fingerprint_tells_arrays_apart(other):
    assert fingerprint(other) != fingerprint(np.array([[1, 2], [3, 4]]))


def test_fingerprint_of_nothing():
    assert fingerprint(np.empty((0, 4))) != fingerprint(np.empty((0, 5)))


def test_fingerprints_are_taken_by_name(rng):
    arrays = {"a": rng.normal(size=5), "b": np.arange(3)}
    assert Fingerprints(arrays).result() == {name: fingerprint(array) for name, array in arrays.items()}
    assert Fingerprints({}).result() == {}


def test_failure_in_the_background_is_told(monkeypatch):
    def broken(_array):
        raise OSError("the disk is gone")

    monkeypatch.setattr(provenance, "fingerprint", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        Fingerprints({"a": np.arange(3)}).result()


def test_cancelled_fingerprints_keep_nobody_waiting(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(provenance, "fingerprint", lambda _array: release.wait(60))
    prints = Fingerprints({"a": np.arange(3)})
    prints.cancel()
    release.set()
    assert prints._pending["a"].result(timeout=10)


def test_versions_name_everything_that_computes(monkeypatch):
    found = versions()
    assert found["prune4rel"] == __version__
    assert found["numpy"] == np.__version__
    assert found.keys() >= {"python", "numba", "torch", "scikit-learn", "pyarrow"}
    monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package",))
    assert versions()["no-such-package"] == "absent"
