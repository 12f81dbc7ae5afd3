"""Clothing-1M: clothes from shopping sites, labelled by the words around them."""

from pathlib import Path

from prune4rel.data.dataset import Dataset, Split
from prune4rel.data.files import join_all, look_up, read_labelled_paths, read_lines, require_files
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError

CLASSES = (
    "T-Shirt",
    "Shirt",
    "Knitwear",
    "Chiffon",
    "Sweater",
    "Hoodie",
    "Windbreaker",
    "Jacket",
    "Down Coat",
    "Suit",
    "Shawl",
    "Dress",
    "Vest",
    "Underwear",
)
WHERE_FROM = "ask for the data as https://github.com/Cysu/noisy_label says"


@register_dataset(
    "clothing1m",
    layout="""
    DATA/noisy_train_key_list.txt, clean_val_key_list.txt, clean_test_key_list.txt   lines of "images/0/00/NAME.jpg"
    DATA/noisy_label_kv.txt, clean_label_kv.txt                                      lines of "images/0/00/NAME.jpg 3"
    DATA/images/0/00/*.jpg ...
    (the lists may also lie in DATA/annotations)
    """,
    citation="Xiao et al., Learning from Massive Noisy Labeled Data for Image Classification, CVPR 2015",
    licence="non-commercial research, on request",
)
def load(root: Path, *, test: str = "test", image_size: int = 224) -> Dataset:
    """Clothing-1M: a million pictures of clothes with labels from the words around them.

    1,000,000 training images in 14 classes. Which labels are wrong is not known; estimates say about 38 %.

    Parameters
    ----------
    test
        Which of the splits that people have labelled to test on: ``"test"`` (10,526) or ``"val"`` (14,313).
    image_size
        Height and width a model gets to see.
    """
    if test not in ("test", "val"):
        raise InputError(f"test must be 'test' or 'val', not {test!r}")
    lists = root / "annotations" if (root / "annotations").is_dir() else root
    train = _read_split(root, lists / "noisy_train_key_list.txt", lists / "noisy_label_kv.txt")
    checked = _read_split(root, lists / f"clean_{test}_key_list.txt", lists / "clean_label_kv.txt")
    return Dataset(
        name="clothing1m",
        train=train,
        test=Split(labels=checked.labels, clean_labels=checked.labels, files=checked.files),
        class_names=CLASSES,
        mean=IMAGENET_MEAN,
        std=IMAGENET_STD,
        image_size=image_size,
    )


def _read_split(root: Path, keys_in: Path, labels_in: Path) -> Split:
    keys = [line.strip() for line in read_lines(keys_in, WHERE_FROM)]
    if len(set(keys)) != len(keys):
        raise InputError(f"{keys_in}: lists an image twice; fetch it again")
    names, numbers = read_labelled_paths(labels_in, len(CLASSES), WHERE_FROM)
    labels = look_up(keys, dict(zip(names, numbers.tolist(), strict=True)), keys_in, labels_in)
    files = join_all(root, keys)
    require_files(files, keys_in)
    return Split(labels=labels, files=files)
