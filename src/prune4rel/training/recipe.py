"""How to train: epochs, batches, rates. What the paper's Table 7 lists, and what a user may change."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from prune4rel.errors import InputError, nearest, refuse_unknown

Scheme = Literal["cosine", "multistep", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
SCHEMES = ("cosine", "multistep", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """Settings of the optimiser and the loop.

    Parameters
    ----------
    epochs, batch
        How often to go over the examples, and how many at a time.
    lr, scheme, lr_min, milestones
        Learning rate at the start, and how it falls: ``"cosine"`` to `lr_min`, ``"multistep"`` divided by ten at each
        of `milestones` (epochs), or ``"constant"``.
    horizon
        Epochs the cosine spans; `epochs` unless told. A warm-up takes that of the training it stands for.
    rise
        Epochs during which the rate rises linearly to `lr` first.
    momentum, nesterov, weight_decay
        Of stochastic gradient descent.
    clip
        Largest norm of a gradient; none unless told.
    ema
        Decay a step of a moving average of the weights, which is then the model; none unless told.
    precision
        ``"bfloat16"`` runs networks in mixed precision; ``"auto"`` does so on a GPU.
    deterministic
        Ask a GPU for algorithms that give the same bits every time; slower.

    Examples
    --------
    >>> recipe = Recipe(epochs=4, lr=1.0, lr_min=0.0)
    >>> [round(recipe.rate(epoch), 3) for epoch in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """

    epochs: int = 300
    batch: int = 128
    lr: float = 0.02
    scheme: Scheme = "cosine"
    lr_min: float = 1e-4
    milestones: tuple[int, ...] = ()
    horizon: int | None = None
    rise: int = 0
    momentum: float = 0.9
    nesterov: bool = True
    weight_decay: float = 5e-4
    clip: float | None = None
    ema: float | None = None
    precision: Precision = "auto"
    deterministic: bool = False

    def __post_init__(self) -> None:
        given: Any = [self.milestones] if _is_whole(self.milestones) else self.milestones
        if not isinstance(given, tuple | list) or not all(_is_whole(epoch) and epoch >= 0 for epoch in given):
            raise InputError(f"milestones must be numbers of epochs, like [50, 75], not {given!r}", "milestones")
        object.__setattr__(self, "milestones", tuple(given))
        self._check("a whole number of at least 1", lambda x: _is_whole(x) and x >= 1, "epochs", "batch", "horizon")
        self._check("a whole number of at least 0", lambda x: _is_whole(x) and x >= 0, "rise")
        self._check("0 or more", lambda x: _is_number(x) and x >= 0, "lr", "lr_min", "weight_decay")
        self._check("at least 0 and below 1", lambda x: _is_number(x) and 0 <= x < 1, "momentum", "ema")
        self._check("above 0", lambda x: _is_number(x) and x > 0, "clip")
        self._check("true or false", lambda x: isinstance(x, bool), "nesterov", "deterministic")
        for name, known in (("scheme", SCHEMES), ("precision", PRECISIONS)):
            value = getattr(self, name)
            if value not in known:
                raise InputError(f"unknown {name} {value!r}; {nearest(value, known)}", name)

    def _check(self, wanted: str, accepts: Callable[[Any], bool], *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            optional = name in ("horizon", "ema", "clip")
            if not accepts(value) and not (value is None and optional):
                raise InputError(f"{name} must be {wanted}, not {value!r}", name)

    def mixed(self, device: str) -> bool:
        """Whether networks run in mixed precision on a device of this type, ``"cpu"`` or ``"cuda"``."""
        return self.precision == "bfloat16" or (self.precision == "auto" and device == "cuda")

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, from 0."""
        if epoch < self.rise:
            return self.lr * (epoch + 1) / self.rise
        if self.scheme == "cosine":
            done = min(1.0, (epoch - self.rise) / max(1, (self.horizon or self.epochs) - self.rise))
            return self.lr_min + (self.lr - self.lr_min) * (1 + math.cos(math.pi * done)) / 2
        if self.scheme == "multistep":
            return float(self.lr / 10 ** sum(epoch >= milestone for milestone in self.milestones))
        return self.lr

    def changed(self, /, **changes: Any) -> Self:
        """Return the same recipe with other values; None means as it was."""
        refuse_unknown("training", changes, asdict(self))
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as a JSON value."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
