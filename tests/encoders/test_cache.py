"""What is kept of embeddings: found again, and not believed where it is damaged."""

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.encoders.cache import EmbeddingCache, key_of
from prune4rel.encoders.sight import Sight
from prune4rel.encoders.tfidf import TfIdf

KEYS = [key_of(bytes([k])) for k in range(20)]
VECTORS = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)


@pytest.fixture
def kept(tmp_path):
    encoder = TfIdf(dim=2).fit(["red fox here", "blue hen there", "green sea"])

    def opened():
        return EmbeddingCache(encoder, tmp_path / "kept")

    opened().add(KEYS, VECTORS)
    return opened


def files(tmp_path, kind):
    return sorted((tmp_path / "kept").rglob(f"*.{kind}.npy"))


def test_what_was_kept_is_found_again(kept):
    hits, found = kept().find([KEYS[3], key_of(b"?"), KEYS[0]])
    assert hits.tolist() == [True, False, True]
    np.testing.assert_array_equal(found, VECTORS[[3, 0]])


@pytest.mark.parametrize("kind", ["keys", "values"])
def test_a_flipped_bit_costs_one_embedding_and_never_gives_another(tmp_path, kept, kind):
    (file,) = files(tmp_path, kind)
    whole = file.read_bytes()
    random = np.random.default_rng(1)
    for _ in range(200):
        at = int(random.integers(len(whole)))
        file.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << int(random.integers(8)))]) + whole[at + 1 :])
        hits, found = kept().find(KEYS)
        np.testing.assert_array_equal(found, VECTORS[hits])
        assert hits.sum() >= 19 or not hits.any()  # the header tells what all of them are


def test_what_is_damaged_is_kept_anew_beside_it(tmp_path, kept):
    (file,) = files(tmp_path, "values")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 64]))
    hits, _ = kept().find(KEYS)
    assert np.flatnonzero(~hits).tolist() == [19]
    kept().add(KEYS[19:], VECTORS[19:])
    hits, found = kept().find(KEYS)
    assert hits.all()
    np.testing.assert_array_equal(found, VECTORS)


@pytest.mark.parametrize(
    "told",
    [
        {"crop": 1e-9},
        {"size": 4096, "crop": 0.1},
        {"crop": float("nan")},
        {"mean": (0.5, 0.5)},
        {"std": (1.0, 0.0, 1.0)},
        {"mean": (0.0, float("nan"), 0.0)},
    ],
)
def test_images_are_never_scaled_beyond_measure(told):
    with pytest.raises(InputError, match="must be"):
        Sight(**{"size": 224, **told})
