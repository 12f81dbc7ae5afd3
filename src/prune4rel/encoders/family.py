"""The one list of encoders."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prune4rel.encoders.encoder import Encoder, EncoderKind, require_weights
from prune4rel.errors import InputError, nearest, refuse_unknown
from prune4rel.registry import Entries, listed, options_of, summary_of

Open = Callable[..., Encoder]

DEFAULTS: dict[EncoderKind, str] = {"images": "timm/tf_efficientnet_lite0", "texts": "wordllama"}
"""Chosen by ``benchmarks/encoders.py``; the same on every machine."""

_COMMON = ("weights", "size", "device")
ENCODERS: Entries["Family"] = Entries("encoder", "prune4rel.encoders", apart=("torch_images",))


@dataclass(frozen=True)
class Family:
    """A registered family of encoders: how one is opened, and what is known of them.

    `form` is how their names are written, `extra` what has to be installed for it.
    """

    name: str
    open: Open
    form: str
    kind: str
    summary: str
    extra: str

    @property
    def options(self) -> dict[str, Any]:
        """The family's own options and their defaults."""
        return {name: value for name, value in options_of(self.open).items() if name not in _COMMON}


def register_encoder(form: str, *, kind: str, extra: str = "") -> Callable[[Open], Open]:
    """Add the decorated function to the list of encoders.

    The function takes ``(which, *, weights, size, device, own options)`` and returns an `Encoder`; `which` is what
    stands behind the family's name. The first line of its docstring is the summary.

    Parameters
    ----------
    form
        How the encoders are written: ``"tfidf"`` for one alone, ``"timm/NAME"`` or ``"onnx:FILE"`` for a family.
    kind
        ``"images"``, ``"texts"``, or ``"images or texts"``.
    extra
        Of this package, which brings what it needs.

    Examples
    --------
    >>> from prune4rel.encoders.tfidf import TfIdf
    >>> @register_encoder("short-tfidf", kind="texts")
    ... def open_short(which, *, weights=None, size=None, device="auto"):
    ...     '''Eight numbers a text.'''
    ...     return TfIdf(dim=8)
    >>> open_encoder("short-tfidf").learns
    True
    >>> _ = ENCODERS.pop("short-tfidf")
    """

    def add(opener: Open) -> Open:
        name = re.split("[/:]", form, maxsplit=1)[0]
        ENCODERS[name] = Family(name, opener, form, kind, summary_of(opener, f"encoder {form!r}"), extra)
        return opener

    return add


def list_encoders(pattern: str | None = None) -> list[str]:
    """How encoders are written: all, or those that match a pattern.

    A pattern that starts with ``timm/`` asks timm, which must be installed then.

    >>> list_encoders("*tfidf*")
    ['tfidf']
    """
    if pattern is not None and pattern.startswith("timm/"):
        from prune4rel.networks.zoo import list_models  # noqa: PLC0415 - an extra

        return [f"timm/{name}" for name in list_models(pattern.removeprefix("timm/"))]
    return listed([family.form for family in ENCODERS.found().values()], pattern)


def get(name: str) -> Family:
    """Look the family of an encoder up, by the encoder's name or by its own."""
    known = list_encoders()
    if not isinstance(name, str) or not name:
        raise InputError(f"an encoder is named by a string, not {name!r}; {nearest(name, known)}", "encoder")
    first, *rest = re.split("[/:]", name, maxsplit=1)
    if first not in ENCODERS and rest and ":" in name:
        return ENCODERS["MODULE"]
    return ENCODERS.look_up(first, known=known)


def default_encoder(kind: str) -> str:
    """Name of the encoder that is taken for a kind of examples unless another one is named.

    >>> default_encoder("files") == default_encoder("images")
    True
    """
    return DEFAULTS["texts" if kind == "texts" else "images"]


def open_encoder(
    name: str,
    weights: str | Path | None = None,
    size: int | None = None,
    device: str = "auto",
    **options: Any,
) -> Encoder:
    """Open an encoder by name.

    Parameters
    ----------
    name
        As `list_encoders` writes them: ``"timm/vit_small_patch14_dinov2"``, ``"tfidf"``, ``"onnx:model.onnx"``,
        ``"my_file:my_function"``, ...
    weights
        A file or folder the weights are read from; by their name from the model hub, or with a package that brings
        them, unless told. Nothing is ever unpickled.
    size
        Height and width images are scaled to; the model's own unless told.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
    **options
        The family's own; ``prune4rel encoders NAME`` tells them.

    Raises
    ------
    InputError
        There is no such encoder, a package is missing, or its weights are neither here nor to be had.

    Examples
    --------
    >>> encoder = open_encoder("tfidf", dim=2).fit(["a red fox", "a red hen", "the blue sea"])
    >>> encoder.encode(["a red fox", "the blue sea"]).shape
    (2, 2)
    """
    family = get(name)
    refuse_unknown(f"encoder {family.form!r}", options, family.options, "encoder")
    which = name if family.name == "MODULE" else name[len(family.name) + 1 :]
    if bool(which) != (family.form != family.name):
        raise InputError(f"encoder {name!r}: write it as {family.form}", "encoder")
    found = require_weights(weights, f"the encoder {family.form}", "a file or folder")
    encoder = family.open(which, weights=found, size=size, device=device, **options)
    encoder.name = name
    return encoder
