"""Tiny folders in the layouts of public data sets."""

import pickle
import zipfile

import numpy as np
import pytest

WNIDS = ("n01440764", "n01443537", "n01484850")


@pytest.fixture
def write_image():
    """Write a small picture; what kind of file is said by the suffix."""
    Image = pytest.importorskip("PIL.Image")

    def write(path, *, size=(12, 10), mode="RGB", seed=0):
        path.parent.mkdir(parents=True, exist_ok=True)
        channels = {"RGB": (3,), "RGBA": (4,), "L": ()}[mode]
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return path

    return write


@pytest.fixture
def tiny_cifar10(tmp_path):
    """Folder laid out as CIFAR-10N is, with 20 training and 4 test images."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    labels = []
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        numbers = rng.integers(0, 10, 4).tolist()
        pixels = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
        write_pickle(
            folder / name, {"batch_label": name, "labels": numbers, "data": pixels, "filenames": ["x.png"] * 4}
        )
        labels += numbers if name != "test_batch" else []
    write_pickle(folder / "batches.meta", {"label_names": [f"class {number}" for number in range(10)]})
    clean = np.array(labels)
    write_torch_zip(
        tmp_path / "CIFAR-10_human.pt",
        {
            "clean_label": clean,
            "worse_label": (clean + 1) % 10,
            "aggre_label": clean,
            **{f"random_label{number}": clean for number in (1, 2, 3)},
        },
    )
    return tmp_path


@pytest.fixture
def tiny_cifar100(tmp_path):
    """Folder laid out as CIFAR-100N is, with 20 training and 4 test images."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    labels = {}
    for name, count in (("train", 20), ("test", 4)):
        labels[name] = rng.integers(0, 100, count).tolist()
        pixels = rng.integers(0, 256, (count, 3072), dtype=np.uint8)
        coarse = [0] * count
        write_pickle(folder / name, {"fine_labels": labels[name], "coarse_labels": coarse, "data": pixels})
    write_pickle(folder / "meta", {"fine_label_names": [f"class {number}" for number in range(100)]})
    noisy = [(label + 1) % 100 for label in labels["train"]]
    write_torch_zip(tmp_path / "CIFAR-100_human.pt", {"clean_label": np.array(labels["train"]), "noisy_label": noisy})
    return tmp_path


@pytest.fixture
def imagenet(tmp_path, write_image):
    """Three classes of ten training and two validation images, as ImageNet lies on disk."""
    source = write_image(tmp_path / "one.JPEG")
    for number, wnid in enumerate(WNIDS):
        for split, count in (("train", 10), ("val", 2)):
            folder = tmp_path / split / wnid
            folder.mkdir(parents=True)
            for image in range(count):
                name = f"{wnid}_{image}.JPEG" if split == "train" else f"ILSVRC2012_val_{number}{image:07}.JPEG"
                (folder / name).write_bytes(source.read_bytes())
    source.unlink()
    return tmp_path


def write_pickle(path, value):
    path.write_bytes(pickle.dumps(value, protocol=2))


def write_torch_zip(path, value):
    """Write a dictionary as torch.save does, without PyTorch."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, protocol=2))
        archive.writestr("archive/version", "3\n")


@pytest.fixture
def save_pickle():
    return write_pickle


@pytest.fixture
def save_torch_zip():
    return write_torch_zip
