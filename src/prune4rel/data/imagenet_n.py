"""ImageNet-N: ImageNet with labels moved to the next class."""

from dataclasses import replace
from pathlib import Path

from prune4rel.data.class_folders import check_same_classes, list_classes, read_class_folders
from prune4rel.data.dataset import Dataset
from prune4rel.data.files import require_folder
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.registry import register_dataset
from prune4rel.noise import asymmetric


@register_dataset(
    "imagenet-n",
    layout="""
    DATA/train/n01440764/*.JPEG ...   one folder a class
    DATA/val/n01440764/*.JPEG ...     the same classes
    """,
    citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
    licence="ImageNet: research and education, on request",
)
def load(root: Path, *, noise: float = 0.2, per_class: bool = True, seed: int = 0, image_size: int = 224) -> Dataset:
    """ImageNet with a share of the labels of class c moved to c + 1, by a seed.

    1,281,167 training and 50,000 validation images in 1,000 classes.

    Parameters
    ----------
    noise
        Share of wrong labels in the training split.
    per_class
        That share of every class, as the paper has it; or of the whole, as the official code has it.
    seed
        Of the noise.
    image_size
        Height and width a model gets to see.
    """
    train_folder = require_folder(root / "train", "expected train/ and val/, with one folder a class in each")
    test_folder = require_folder(root / "val", "expected train/ and val/, with one folder a class in each")
    names = list_classes(train_folder)
    check_same_classes(names, list_classes(test_folder), train_folder, test_folder)
    train = read_class_folders(train_folder, names)
    test = read_class_folders(test_folder, names)
    noisy = asymmetric(train.labels, noise, mapping="next", n_classes=len(names), per_class=per_class, seed=seed)
    return Dataset(
        name="imagenet-n",
        train=replace(train, labels=noisy, clean_labels=train.labels),
        test=replace(test, clean_labels=test.labels),
        class_names=names,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )
