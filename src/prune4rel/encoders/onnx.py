"""Any exported model of images, through onnxruntime: without PyTorch, and the quickest on a CPU."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.decode import Fit
from prune4rel.encoders.encoder import Encoder, Vectors, digest_of, require
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError
from prune4rel.machine import resolve_device
from prune4rel.reading import parse_json, read_bytes, reading

MOST_BYTES = 2**31
METADATA = "prune4rel.sight"
"""Entry of an ONNX file's metadata that says how images are prepared for it: the options here, as JSON."""


@register_encoder("onnx:FILE", kind="images", extra="onnx")
def open_onnx(
    which: str,
    *,
    weights: Path | None = None,
    size: int | None = None,
    device: str = "auto",
    crop: float | None = None,
    fit: Fit | None = None,
    interpolation: str | None = None,
    mean: str | None = None,
    std: str | None = None,
) -> "OnnxImages":
    """Any exported model of images, through onnxruntime; without PyTorch, and the quickest on a CPU.

    Its input is (batch, 3, height, width) float32, its first output is the embedding. How images are prepared stands
    in the file's metadata (entry ``prune4rel.sight``) or is told here; else as for ImageNet.

    Parameters
    ----------
    crop
        Share of the shorter side that is seen.
    fit
        crop or stretch.
    interpolation
        bilinear, bicubic or lanczos.
    mean, std
        Three numbers with commas between, of red, green and blue between 0 and 1.
    """
    if weights is not None:
        raise InputError("onnx:FILE holds its weights itself; leave weights out", "weights")
    runtime = require("onnxruntime", f"the encoder onnx:{which}", "onnx")
    file = Path(which).expanduser()
    if not file.is_file():
        raise InputError(f"{file}: no such file", "encoder")
    given: dict[str, Any] = {"size": size, "crop": crop, "fit": fit, "interpolation": interpolation}
    given |= {name: _colour(text, name) for name, text in (("mean", mean), ("std", std)) if text is not None}
    given = {name: value for name, value in given.items() if value is not None}
    return OnnxImages(runtime, file, given, device)


def _colour(text: str, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise InputError(f"{name} takes three numbers with commas between, not {text!r}", name)
    return numbers


# Where ONNX keeps its tensors: by message, the fields that hold others, and the one of a tensor that names a file.
_MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "file"},
}


def names_other_files(content: bytes) -> bool:
    """Whether a network keeps some of its numbers in other files, which it can name wherever they lie.

    Only the parts that may hold tensors are looked into. What is no such message ends in a `ValueError`.
    """
    waiting = [("model", 0, len(content))]
    while waiting:
        kind, at, end = waiting.pop()
        if kind == "file":
            return True
        while at < end:
            tag, at = _number_at(content, at)
            if tag & 7 in (1, 5):
                at += 8 if tag & 7 == 1 else 4
                continue
            size, at = _number_at(content, at)
            if tag & 7 == 2:
                if (inside := _MESSAGES[kind].get(tag >> 3)) is not None:
                    waiting.append((inside, at, at + size))
                at += size
            elif tag & 7 != 0:
                raise ValueError("is no ONNX file")
        if at != end:
            raise ValueError("is cut short")
    return False


def _number_at(content: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and where the next begins."""
    found = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            break
        found |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return found, at
    raise ValueError("is cut short")


def _facts_in(told: str, where: str) -> dict[str, Any]:
    """Return how images are prepared, as a file says it."""
    with reading(where, "way to prepare images"):
        facts = dict(parse_json(told, where))
        return facts | {name: tuple(map(float, facts[name])) for name in ("mean", "std") if name in facts}
    raise AssertionError


class OnnxImages(Encoder):
    """An ONNX file whose input is images and whose first output is vectors."""

    kind = "images"

    def __init__(self, runtime: Any, file: Path, given: dict[str, Any], device: str) -> None:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # each lane has one core
        options.log_severity_level = 3
        self.device = resolve_device(device) if "CUDAExecutionProvider" in runtime.get_available_providers() else "cpu"
        provider = "CPUExecutionProvider" if self.device == "cpu" else "CUDAExecutionProvider"
        content = read_bytes(file, "a network", MOST_BYTES)
        with reading(file, "ONNX file"):
            if names_other_files(content):
                raise InputError(
                    f"{file}: keeps numbers in other files, which are not read; save it as one file "
                    "(onnx.save_model(..., save_as_external_data=False))",
                    "encoder",
                )
        try:
            self._session = runtime.InferenceSession(content, options, providers=[provider])
        except Exception as error:  # noqa: BLE001 - the runtime's kinds of errors are not public
            reason = str(error).partition("\n")[0][:200]
            raise InputError(f"{file}: onnxruntime cannot read it ({reason})", "encoder") from None
        self.name = f"onnx:{file}"
        self.digest = digest_of({"file": content})
        inputs = self._session.get_inputs()
        shape = inputs[0].shape
        if len(inputs) != 1 or len(shape) != 4 or shape[1] not in (3, "3") or inputs[0].type != "tensor(float)":
            found = ", ".join(f"{one.name} {one.type} {one.shape}" for one in inputs)
            raise InputError(
                f"{file}: takes {found}; expected one input (batch, 3, height, width) of floats", "encoder"
            )
        self._input = inputs[0].name
        own = shape[2] if isinstance(shape[2], int) and shape[2] > 0 else None
        if own is not None and shape[3] != own:
            raise InputError(f"{file}: takes images of {shape[3]} x {own}; only squares are supported", "encoder")
        told = self._session.get_modelmeta().custom_metadata_map.get(METADATA)
        own_facts = _facts_in(told, f"{file}: {METADATA}") if told else {}
        facts = {**({"size": own} if own else {}), **own_facts, **given}
        if own is not None and facts["size"] != own:
            raise InputError(f"{file}: takes images of {own} x {own} alone; leave size out", "size")
        with reading(f"{file}: {METADATA}", "way to prepare images"):
            self.sight = Sight(**({"size": 224} | facts))
        if isinstance(shape[0], int):
            self.batch = shape[0]
        mean, std = np.array(self.sight.mean), np.array(self.sight.std)
        self._scale = (1 / (255 * std)).astype(np.float32)[:, None, None]
        self._shift = (-mean / std).astype(np.float32)[:, None, None]

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        size = self.size or 1
        return int(self.encode([np.zeros((size, size, 3), dtype=np.uint8)]).shape[1])

    def encode(self, batch: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Turn b images (size, size, 3) uint8 into (b, d) float32."""
        images = np.asarray(batch).transpose(0, 3, 1, 2)
        inputs = np.ascontiguousarray(images * self._scale + self._shift, dtype=np.float32)
        short = self.batch - len(inputs) if isinstance(self._session.get_inputs()[0].shape[0], int) else 0
        if short:  # exported for one length of a batch
            inputs = np.concatenate([inputs, np.zeros((short, *inputs.shape[1:]), dtype=np.float32)])
        with reading(self.name, "network for these images"):
            found = np.asarray(self._session.run(None, {self._input: inputs})[0], dtype=np.float32)
            if found.ndim == 4:  # a map of features: its mean, as pooling does
                found = found.mean(axis=(2, 3))
            return found[: len(batch)].reshape(len(batch), -1)
        raise AssertionError
