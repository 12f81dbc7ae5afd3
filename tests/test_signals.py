import numpy as np
import pytest
import torch

from prune4rel.errors import InputError
from prune4rel.signals import Signals

FORMATS = ("folder", "signals.npz", "signals.safetensors", "signals.parquet")


def assert_same_signals(one, other):
    assert one.class_names == other.class_names
    left, right = one.arrays(), other.arrays()
    assert left.keys() == right.keys()
    for name, array in left.items():
        np.testing.assert_array_equal(right[name], array, err_msg=name)
        assert right[name].dtype == array.dtype or array.dtype.kind == "U"


@pytest.fixture
def full(rng):
    n = 12
    numbers = {name: rng.random(n) for name in ("losses", "forgetting", "grad_norms", "el2n", "aum", "scores")}
    return Signals(
        labels=["cat", "dog", "cat"] * 4,
        class_names=["dog", "unicorn", "cat"],
        probabilities=rng.dirichlet(np.ones(3), n),
        embeddings=rng.normal(size=(n, 5)).astype(np.float16),
        ssl_embeddings=rng.normal(size=(n, 2)).astype(np.float32),
        ids=[f"image-{k}" for k in range(n)],
        known=np.arange(n) != 3,
        verified=np.arange(n) < 2,
        **numbers,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_brings_everything_back(full, name, tmp_path):
    full.save(tmp_path / name)
    loaded = Signals.load(tmp_path / name)
    assert_same_signals(loaded, full)
    assert loaded.class_names == ("dog", "unicorn", "cat")
    assert loaded.labels.tolist() == [2, 0, 2] * 4
    assert loaded.embeddings.dtype == np.float16
    assert loaded.ids[3] == "image-3"


def test_rows_that_could_be_read_are_those_known_or_in_signals_of_old_those_with_a_finite_loss():
    losses = [0.5, np.inf, 1.0]
    assert Signals(labels=[0, 1, 2]).readable_rows.tolist() == [0, 1, 2]
    assert Signals(labels=[0, 1, 2], losses=losses).readable_rows.tolist() == [0, 2]
    assert Signals(labels=[0, 1, 2], losses=losses, known=[False, True, True]).readable_rows.tolist() == [1, 2]


def test_some_examples_of_signals(full):
    some = full.only(np.array([4, 1]))
    assert some.class_names == full.class_names
    for name, array in full.arrays().items():
        if name != "class_names":
            np.testing.assert_array_equal(some.arrays()[name], array[[4, 1]])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_brings_labels_alone_back(name, tmp_path):
    signals = Signals(labels=[2, 0])
    signals.save(tmp_path / name)
    assert_same_signals(Signals.load(tmp_path / name), signals)


@pytest.mark.parametrize("name", FORMATS)
def test_as_many_classes_as_examples_come_back(name, tmp_path):
    signals = Signals(labels=["b", "a"], class_names=["a", "b"], ids=np.array([7, 9]))
    signals.save(tmp_path / name)
    assert_same_signals(Signals.load(tmp_path / name), signals)


def test_existing_signals_are_kept_unless_forced(full, tmp_path):
    full.save(tmp_path / "signals.npz")
    with pytest.raises(InputError, match=r"signals.npz: exists already; .* --force"):
        Signals(labels=[0]).save(tmp_path / "signals.npz")
    Signals(labels=[0]).save(tmp_path / "signals.npz", force=True)
    assert len(Signals.load(tmp_path / "signals.npz")) == 1


def test_folder_can_be_replaced_by_what_was_loaded_from_it(full, tmp_path):
    full.save(tmp_path / "folder")
    Signals.load(tmp_path / "folder").save(tmp_path / "folder", force=True)
    assert_same_signals(Signals.load(tmp_path / "folder"), full)


def test_folder_is_memory_mapped(full, tmp_path):
    full.save(tmp_path / "folder")
    embeddings = Signals.load(tmp_path / "folder").embeddings
    assert isinstance(embeddings, np.memmap) or isinstance(embeddings.base, np.memmap)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_million_memory_mapped_rows_are_not_copied(tmp_path, kind):
    on_disk = np.lib.format.open_memmap(tmp_path / "e.npy", mode="w+", dtype=kind, shape=(1_000_000, 4))
    on_disk[:] = np.arange(1, 5)
    del on_disk
    mapped = np.load(tmp_path / "e.npy", mmap_mode="r")
    signals = Signals(labels=np.zeros(1_000_000, dtype=np.int64), embeddings=mapped)
    assert np.shares_memory(signals.embeddings, mapped)
    assert signals.squared_norms["embeddings"][[0, -1]].tolist() == [30, 30]


def test_single_and_half_precision_arrays_are_used_as_they_are(rng):
    for kind in (np.float16, np.float32):
        rows = rng.normal(size=(3, 2)).astype(kind)
        assert Signals(labels=[0, 0, 0], embeddings=rows).embeddings is rows


@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows.astype(np.float64),
        lambda rows: rows.astype(np.int64),
        lambda rows: rows.astype(">f4"),
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
        lambda rows: rows.tolist(),
        torch.from_numpy,
        lambda rows: torch.from_numpy(rows).bfloat16(),
        lambda rows: torch.from_numpy(rows).double().requires_grad_(),
    ],
    ids=["float64", "int64", "big-endian", "Fortran", "strided", "list", "tensor", "bfloat16", "grad"],
)
def test_other_types_and_layouts_become_contiguous_single_precision(rng, convert):
    rows = rng.integers(-9, 9, size=(6, 4)).astype(np.float32)
    found = Signals(labels=[0] * 6, embeddings=convert(rows)).embeddings
    np.testing.assert_array_equal(found, rows)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.uint64])
def test_labels_of_every_integer_type_become_int64(kind):
    assert Signals(labels=np.array([1, 0, 2], dtype=kind)).labels.dtype == np.int64
    assert Signals(labels=torch.tensor([1, 0, 2])).labels.tolist() == [1, 0, 2]


def test_names_as_labels_are_numbered_in_sorted_order():
    signals = Signals(labels=["dog", "cat", "dog"])
    assert signals.labels.tolist() == [1, 0, 1]
    assert signals.class_names == ("cat", "dog")
    assert signals.n_classes == 2


def test_names_as_labels_follow_the_given_class_names():
    signals = Signals(labels=["dog", "cat"], class_names=["dog", "bird", "cat"], probabilities=np.full((2, 3), 1 / 3))
    assert signals.labels.tolist() == [0, 2]
    assert signals.n_classes == 3


@pytest.mark.parametrize(
    ("inputs", "classes"),
    [
        ({"labels": [0, 3]}, 4),
        ({"labels": [0, 1], "class_names": ["a", "b", "c"]}, 3),
        ({"labels": [0, 1], "probabilities": np.full((2, 5), 0.2)}, 5),
    ],
)
def test_number_of_classes(inputs, classes):
    assert Signals(**inputs).n_classes == classes


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_probabilities_keep_their_precision_and_may_be_rounded(rng, kind):
    rows = rng.dirichlet(np.ones(1000), size=4).astype(kind)
    assert Signals(labels=[0] * 4, probabilities=rows).probabilities is rows


def test_one_hot_integers_are_probabilities():
    probabilities = Signals(labels=[0, 1], probabilities=[[1, 0], [0, 1]]).probabilities
    assert probabilities.dtype == np.float32


def test_squared_norms_are_in_double_precision(rng):
    rows = rng.normal(size=(40, 300)).astype(np.float32)
    wanted = (rows.astype(np.float64) ** 2).sum(axis=1)
    found = Signals(labels=[0] * 40, embeddings=rows, ssl_embeddings=rows[:, :3]).squared_norms
    np.testing.assert_allclose(found["embeddings"], wanted, rtol=1e-14)
    assert found.keys() == {"embeddings", "ssl_embeddings"}


def test_what_is_loaded_must_be_known_and_have_labels(tmp_path):
    np.savez(tmp_path / "odd.npz", labels=[0], pictures=[1])
    with pytest.raises(InputError, match=r"odd.npz: unknown signal 'pictures'; known are aum, class_names"):
        Signals.load(tmp_path / "odd.npz")
    np.savez(tmp_path / "bare.npz", losses=[0.5])
    with pytest.raises(InputError, match=r"bare.npz: no labels in it; it holds losses"):
        Signals.load(tmp_path / "bare.npz")
