"""Tar shards in the layout of webdataset: an image and its label under one name."""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from prune4rel.data.classes import number_classes
from prune4rel.data.dataset import Dataset, Split, hold_out
from prune4rel.data.files import is_image
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD
from prune4rel.data.reader import register_dataset
from prune4rel.errors import InputError, in_a_line
from prune4rel.reading import check_regular, parse_json, reading

LABELS = ("cls", "label", "json")
TEXTS = ("txt", "text")
MOST_LABEL_BYTES = 2**20
GZIP = b"\x1f\x8b"


@register_dataset(
    "webdataset",
    layout="""
    DATA.tar, or DATA/*.tar, or DATA/train*.tar and DATA/test*.tar (or val*.tar), with NAME.jpg (or .png, .webp, ...;
    or NAME.txt) and NAME.cls beside it: a number, or a name; or NAME.json with the label in it
    """,
)
def load(root: Path, *, label: str = "label", image_size: int = 224, test_share: float = 0.0, seed: int = 0) -> Dataset:
    """Tar shards as webdataset has them; images are read where they lie, nothing is unpacked.

    Parameters
    ----------
    label
        Key of the label in NAME.json, where labels come as JSON.
    image_size
        Height and width a model gets to see.
    test_share
        Share of the examples to hold out for testing where there are no test shards.
    seed
        Of that draw.
    """
    shards = {"train": [root]} if root.is_file() else _by_split(root)
    found = {title: _read_shards(files, label) for title, files in shards.items()}
    numbers, names = number_classes(np.concatenate([labels for _, _, labels in found.values()]), f"{root}: labels")
    ends = np.cumsum([len(labels) for _, _, labels in found.values()])
    splits = {}
    for (title, (keys, content, _)), part in zip(found.items(), np.split(numbers, ends[:-1]), strict=True):
        splits[title] = Split(labels=part, ids=np.array(keys), **content)
    try:
        train, test = hold_out(splits["train"], test_share, seed, test=splits.get("test"))
    except InputError as error:
        raise InputError(f"{root}: {error}") from None
    look: dict[str, Any] = {}
    if train.kind == "files":
        look = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD, "image_size": image_size}
    return Dataset(name="webdataset", train=train, test=test, class_names=names, **look)


@dataclass(frozen=True)
class Member:
    """A file in a tar: where it begins, and how long it is."""

    tar: Path
    name: str
    start: int
    size: int

    def read_bytes(self) -> bytes:
        """Return its content."""
        with self.tar.open("rb") as file:
            file.seek(self.start)
            content = file.read(self.size)
        if len(content) != self.size:
            raise OSError("the tar is shorter than it was")
        return content

    @property
    def homes(self) -> tuple[Path, ...]:
        """The file it lies in."""
        return (self.tar,)

    @property
    def part(self) -> str:
        """Which part of it it is."""
        return f"{self.start} {self.size}"

    def __str__(self) -> str:
        return f"{self.tar}/{self.name}"


def _by_split(root: Path) -> dict[str, list[Path]]:
    tars = sorted(root.glob("*.tar"))
    if not tars:
        raise InputError(f"{root}: no .tar file in this folder")
    test = [tar for tar in tars if tar.name.lower().startswith(("test", "val"))]
    if any(tar.name.lower().startswith("test") for tar in test):
        test = [tar for tar in test if tar.name.lower().startswith("test")]
    named = [tar for tar in tars if tar.name.lower().startswith("train")]
    train = named or [tar for tar in tars if not tar.name.lower().startswith(("test", "val"))]
    if not train:
        raise InputError(f"{root}: no shard to train on; it has {', '.join(tar.name for tar in tars[:5])}")
    return {"train": train} | ({"test": test} if test else {})


def _members(tar: Path) -> Iterator[tuple[str, str, Member]]:
    """Yield key, extension and place of every file in a tar; names that climb out of it are refused."""
    with reading(tar, "tar"):
        size = check_regular(tar)
        with tar.open("rb") as file:
            if file.read(2) == GZIP:
                raise InputError(f"{tar}: is compressed; unpack it to a plain .tar first")
        with tarfile.open(tar, "r:") as opened:
            entries = [entry for entry in opened if entry.isfile()]
    for entry in entries:
        path = PurePosixPath(entry.name)
        if path.is_absolute() or ".." in path.parts:
            name = in_a_line(entry.name)
            raise InputError(f"{tar}: holds the name {name!r}, which leads out of it; such a tar is not read")
        if entry.issparse() or not 0 <= entry.size <= size - entry.offset_data:
            raise InputError(f"{tar}: not a readable tar ({in_a_line(entry.name)} is longer than the file)")
        stem, _, extension = path.name.partition(".")
        if stem:
            yield str(path.parent / stem), extension.lower(), Member(tar, entry.name, entry.offset_data, entry.size)


def _read_shards(tars: list[Path], label: str) -> tuple[list[str], dict[str, Any], np.ndarray[Any, Any]]:
    keys: list[str] = []
    images: list[Member] = []
    texts: list[str] = []
    labels: list[str] = []
    for tar in tars:
        groups: dict[str, dict[str, Member]] = {}
        for key, extension, member in _members(tar):
            groups.setdefault(key, {})[extension] = member
        for key, group in groups.items():
            image = next((one for extension, one in group.items() if is_image(f"a.{extension}")), None)
            text = next((one for extension, one in group.items() if extension in TEXTS), None)
            if image is None and text is None:
                continue
            labels.append(_label_of(group, label, f"{tar}/{key}"))
            keys.append(key)
            if image is not None:
                images.append(image)
            elif text is not None:
                texts.append(text.read_bytes().decode("utf-8", "replace"))
    if not keys:
        raise InputError(f"{tars[0]}: no image and no text in it; expected NAME.jpg (or .txt) beside NAME.cls")
    if images and texts:
        raise InputError(f"{tars[0].parent}: some examples are images and some are texts; keep them apart")
    return keys, {"files": tuple(images)} if images else {"texts": tuple(texts)}, np.array(labels, dtype=np.str_)


def _label_of(group: dict[str, Member], label: str, where: str) -> str:
    for extension in LABELS:
        if (member := group.get(extension)) is not None:
            if member.size > MOST_LABEL_BYTES:
                raise InputError(f"{where}.{extension}: is no label, it has {member.size} bytes")
            text = member.read_bytes().decode("utf-8", "replace").strip()
            if extension != "json":
                return text
            found = parse_json(text, f"{where}.json")
            if not isinstance(found, dict) or label not in found:
                raise InputError(f"{where}.json: holds no {label!r}")
            return str(found[label])
    raise InputError(f"{where}: has no label; expected a file {where}.cls beside it")
