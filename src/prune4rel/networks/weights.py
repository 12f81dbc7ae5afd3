"""Weights in files of others: tensors by name, read without running anything in the file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prune4rel.errors import InputError
from prune4rel.reading import reading

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
INNER = ("state_dict_ema", "model_ema", "state_dict", "model")
"""Names under which checkpoints keep a model's weights among other things."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read weights: a safetensors file, one that PyTorch saved, or a folder with one of them.

    Raises
    ------
    InputError
        It holds anything but tensors, or cannot be read.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        if len(files) != 1:
            names = ", ".join(file.name for file in files) or "none"
            raise InputError(f"{path}: expected one file of weights in this folder, found {names}; name the file")
        path = files[0]
    with reading(path, "file of weights; save a state_dict with torch.save or as .safetensors"):
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file  # noqa: PLC0415 - only for this format

            return load_file(path)
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
        for name in INNER:
            if isinstance(found, dict) and isinstance(found.get(name), dict):
                found = found[name]
                break
        return {re.sub(r"^(_orig_mod\.|module\.)+", "", str(name)): tensor.detach() for name, tensor in found.items()}
    raise AssertionError


def matched(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor], where: Path) -> dict[str, Tensor]:
    """Give the tensors found the names that are wanted: by name, or, where another library named them, in order.

    In order only if every tensor has the shape and the last name of its counterpart.

    >>> a, b = torch.zeros(2), torch.zeros(3, 2)
    >>> sorted(matched({"conv.weight": b, "bn.bias": a}, {"_conv.weight": b, "_bn0.bias": a}, Path("file")))
    ['bn.bias', 'conv.weight']
    """
    missing = [name for name in wanted if name not in found]
    if not missing:
        return {name: found[name] for name in wanted}
    if len(found) == len(wanted) and all(
        ours.shape == theirs.shape and name.rpartition(".")[2] == other.rpartition(".")[2]
        for (name, ours), (other, theirs) in zip(wanted.items(), found.items(), strict=True)
    ):
        return dict(zip(wanted, found.values(), strict=True))
    raise InputError(
        f"{where}: holds no weights of this model: {len(missing)} of {len(wanted)} tensors are missing, "
        f"the first is {missing[0]!r}",
        "weights",
    )
