import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset
from prune4rel.data.unpickle import unpickle
from prune4rel.noise import CIFAR100_SUPERCLASSES

RATES = {"worst": 40.21, "aggre": 9.01, "random1": 17.23, "random2": 18.12, "random3": 17.64, "clean": 0.0}


@pytest.mark.parametrize("noise", RATES)
def test_the_public_files_have_the_published_sizes_and_noise(real_cifar, noise):
    data = load_dataset("cifar10n", real_cifar, noise=noise)
    assert data.train.images.shape == (50_000, 32, 32, 3)
    assert data.test.images.shape == (10_000, 32, 32, 3)
    assert data.train.images.flags.c_contiguous
    assert round(100 * data.train.noise_rate, 2) == RATES[noise]
    assert np.bincount(data.train.clean_labels).tolist() == [5000] * 10
    assert np.bincount(data.test.labels).tolist() == [1000] * 10
    assert data.class_names[:3] == ("airplane", "automobile", "bird")


def test_the_first_public_image_is_the_frog_everybody_knows(real_cifar):
    data = load_dataset("cifar10n", real_cifar, noise="clean")
    assert data.class_names[data.train.labels[0]] == "frog"
    assert data.train.images[0, 0, :2].tolist() == [[59, 62, 63], [43, 46, 45]]
    colours = data.train.images[::50].reshape(-1, 3).mean(axis=0) / 255
    np.testing.assert_allclose(colours, data.mean, atol=0.01)


def test_a_made_up_folder_is_read_in_order(tiny_cifar10):
    data = load_dataset("cifar10n", tiny_cifar10, md5=False)
    assert data.train.images.shape == (20, 32, 32, 3)
    assert data.train.noise_rate == 1.0
    assert (data.train.labels == (data.train.clean_labels + 1) % 10).all()
    inside = load_dataset("cifar10n", tiny_cifar10 / "cifar-10-batches-py", md5=False)
    assert (inside.train.images == data.train.images).all()


def test_channels_are_put_last(tiny_cifar10, save_pickle):
    pixels = np.arange(3072, dtype=np.uint16).astype(np.uint8)[None]
    for number in range(1, 6):
        save_pickle(tiny_cifar10 / f"cifar-10-batches-py/data_batch_{number}", {"data": pixels, "labels": [1]})
    image = load_dataset("cifar10n", tiny_cifar10, noise="clean", md5=False).train.images[0]
    for y, x, channel in ((0, 0, 0), (3, 5, 1), (31, 31, 2)):
        assert image[y, x, channel] == (channel * 1024 + y * 32 + x) % 256


def test_a_wrong_md5_is_named_with_what_was_expected(tiny_cifar10):
    with pytest.raises(
        InputError, match=r"data_batch_1: its md5 is .* the public file's is c99cafc152244af753f735de768"
    ):
        load_dataset("cifar10n", tiny_cifar10)


def test_clean_needs_no_human_labels_but_noise_does(tiny_cifar10):
    (tiny_cifar10 / "CIFAR-10_human.pt").unlink()
    assert load_dataset("cifar10n", tiny_cifar10, noise="clean", md5=False).train.noise_rate == 0
    with pytest.raises(InputError, match=r"CIFAR-10_human.pt: not found.*noise=clean"):
        load_dataset("cifar10n", tiny_cifar10, md5=False)


def drop_batch(folder, _save):
    (folder / "cifar-10-batches-py/data_batch_3").unlink()


def cut_batch(folder, _save):
    path = folder / "cifar-10-batches-py/data_batch_3"
    path.write_bytes(path.read_bytes()[:-50])


def empty_batch(folder, _save):
    (folder / "cifar-10-batches-py/data_batch_3").write_bytes(b"")


def list_in_batch(folder, save):
    save["pickle"](folder / "cifar-10-batches-py/data_batch_3", [1, 2])


def small_images(folder, save):
    save["pickle"](folder / "cifar-10-batches-py/data_batch_3", {"data": np.zeros((4, 9), np.uint8), "labels": [0] * 4})


def few_labels(folder, save):
    save["pickle"](folder / "cifar-10-batches-py/data_batch_3", {"data": np.zeros((4, 3072), np.uint8), "labels": [0]})


def no_labels(folder, save):
    save["pickle"](folder / "cifar-10-batches-py/data_batch_3", {"data": np.zeros((4, 3072), np.uint8)})


def ragged_labels(folder, save):
    save["pickle"](
        folder / "cifar-10-batches-py/data_batch_3", {"data": np.zeros((2, 3072), np.uint8), "labels": [[0], [1, 2]]}
    )


def no_names(folder, save):
    save["pickle"](folder / "cifar-10-batches-py/batches.meta", {"label_names": 3})


def cut_human(folder, _save):
    path = folder / "CIFAR-10_human.pt"
    path.write_bytes(path.read_bytes()[:-200])


def short_human(folder, save):
    save["zip"](folder / "CIFAR-10_human.pt", {"clean_label": np.zeros(7, int), "worse_label": np.zeros(7, int)})


def other_order(folder, save):
    save["zip"](folder / "CIFAR-10_human.pt", {"clean_label": np.zeros(20, int), "worse_label": np.zeros(20, int)})


def no_worse(folder, save):
    clean = load_dataset("cifar10n", folder, noise="clean", md5=False).train.labels
    save["zip"](folder / "CIFAR-10_human.pt", {"clean_label": clean})


BROKEN = [
    (drop_batch, r"data_batch_3: no such file"),
    (cut_batch, r"data_batch_3: not a readable pickle, perhaps truncated"),
    (empty_batch, r"data_batch_3: the file is empty"),
    (list_in_batch, r"data_batch_3: holds a list; expected a dictionary"),
    (small_images, r"data_batch_3: data has shape \(4, 9\)"),
    (few_labels, r"data_batch_3: labels has shape \(1,\) .* each of 4 images"),
    (no_labels, r"data_batch_3: has no 'labels'; it holds data"),
    (ragged_labels, r"data_batch_3: 'labels' is no array"),
    (no_names, r"batches.meta: has no list of names"),
    (cut_human, r"CIFAR-10_human.pt: not a readable pickle"),
    (short_human, r"CIFAR-10_human.pt: clean_label has shape \(7,\) .* each of 20 images"),
    (other_order, r"CIFAR-10_human.pt: clean_label differs .* in \d+ of 20 rows, .* another order"),
    (no_worse, r"CIFAR-10_human.pt: has no 'worse_label'"),
]


@pytest.mark.parametrize(("spoil", "message"), BROKEN, ids=[spoil.__name__ for spoil, _ in BROKEN])
def test_broken_files_are_named(tiny_cifar10, save_pickle, save_torch_zip, spoil, message):
    spoil(tiny_cifar10, {"pickle": save_pickle, "zip": save_torch_zip})
    with pytest.raises(InputError, match=message):
        load_dataset("cifar10n", tiny_cifar10, md5=False)


def test_an_unknown_noise_or_folder(tiny_cifar10, tmp_path_factory):
    with pytest.raises(InputError, match="did you mean 'worst'"):
        load_dataset("cifar10n", tiny_cifar10, noise="worse")
    with pytest.raises(InputError, match=r"cifar-10-batches-py: not found; unpack https"):
        load_dataset("cifar10n", tmp_path_factory.mktemp("empty"))


def test_the_public_files_of_cifar100n_have_the_published_sizes_and_noise(real_cifar):
    data = load_dataset("cifar100n", real_cifar)
    assert data.train.images.shape == (50_000, 32, 32, 3)
    assert data.test.images.shape == (10_000, 32, 32, 3)
    assert round(100 * data.train.noise_rate, 2) == 40.20
    sizes = np.bincount(data.train.labels, minlength=100)
    assert (sizes.min(), sizes.max()) == (199, 865)
    assert np.bincount(data.test.labels).tolist() == [100] * 100
    assert data.class_names[0] == "apple"


def test_superclasses_are_those_of_the_public_files(real_cifar):
    content = unpickle(real_cifar / "cifar-100-python" / "test")
    superclass = dict(zip(content["fine_labels"], content["coarse_labels"], strict=True))
    assert tuple(superclass[label] for label in range(100)) == CIFAR100_SUPERCLASSES


def test_a_made_up_folder(tiny_cifar100):
    data = load_dataset("cifar100n", tiny_cifar100, md5=False)
    assert len(data.train) == 20
    assert data.train.noise_rate == 1.0
    assert load_dataset("cifar100n", tiny_cifar100, md5=False, noise="clean").train.noise_rate == 0


def test_wrong_sums_order_and_noise_are_refused(tiny_cifar100, save_torch_zip):
    with pytest.raises(InputError, match=r"train: its md5 is .* the public file's is 16019d7e3df5f24257cddd939b257f8d"):
        load_dataset("cifar100n", tiny_cifar100)
    with pytest.raises(InputError, match="did you mean 'noisy'"):
        load_dataset("cifar100n", tiny_cifar100, noise="noise")
    clean = load_dataset("cifar100n", tiny_cifar100, md5=False).train.clean_labels
    save_torch_zip(tiny_cifar100 / "CIFAR-100_human.pt", {"clean_label": clean[::-1], "noisy_label": clean.tolist()})
    with pytest.raises(InputError, match="another order"):
        load_dataset("cifar100n", tiny_cifar100, md5=False)
