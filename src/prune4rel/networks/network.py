"""What every network here is: an embedding, and a linear classifier on top of it; and the list of them."""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from prune4rel.errors import InputError, refuse_unknown
from prune4rel.registry import Entries, options_of

Shape: TypeAlias = tuple[int, ...]

IMAGE: Shape = (3, 32, 32)
"""Shape of one input where none is given: channels, height, width."""


class Network(nn.Module, ABC):
    """A network whose last layer is linear, so that what it knows of an input is one vector.

    A network of your own says how to `embed`; the rest is here.

    Parameters
    ----------
    dim
        Length d of an embedding.
    n_classes
        Number of classes C.

    Attributes
    ----------
    head
        The classifier, ``nn.Linear(dim, n_classes)``.

    Examples
    --------
    >>> import torch
    >>> class Flat(Network):
    ...     def embed(self, x):
    ...         return x.flatten(1)
    >>> network = Flat(12, 5)
    >>> x = torch.zeros(2, 3, 2, 2)
    >>> network.embed(x).shape, network(x).shape, network.dim, network.n_classes
    (torch.Size([2, 12]), torch.Size([2, 5]), 12, 5)
    """

    def __init__(self, dim: int, n_classes: int) -> None:
        super().__init__()
        self.dim = positive(dim, "dim")
        self.n_classes = positive(n_classes, "n_classes")
        self.head = nn.Linear(dim, n_classes)

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into embeddings (B, d)."""

    def classify(self, z: Tensor) -> Tensor:
        """Turn embeddings (B, d) into logits (B, C), in full precision also where the rest is mixed."""
        with torch.autocast(z.device.type, enabled=False):
            logits: Tensor = self.head(z.to(self.head.weight.dtype))
        return logits

    def forward(self, x: Tensor) -> Tensor:
        """Turn inputs (B, ...) into logits (B, C)."""
        return self.classify(self.embed(x))


def positive(number: int, name: str) -> int:
    """Refuse a count below one."""
    if number < 1:
        raise InputError(f"{name} must be 1 or more, not {number}")
    return number


def channels_of(shape: Shape, network: str) -> int:
    """Return the number of channels of an image shape, and refuse any other shape.

    >>> channels_of((3, 32, 32), "small-cnn")
    3
    >>> channels_of((64,), "small-cnn")
    Traceback (most recent call last):
    prune4rel.errors.InputError: network 'small-cnn' takes images (channels, height, width), not ...
    """
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(
            f"network {network!r} takes images (channels, height, width), not inputs of shape {tuple(shape)}; "
            "use 'mlp' for features"
        )
    return shape[0]


def numbers_in(shape: Shape) -> int:
    """Return how many numbers an input of this shape holds."""
    return positive(math.prod(shape), "the size of an input") if shape else 1


ZOO = "timm/"
"""What the name of a timm model starts with here."""

Maker = TypeVar("Maker", bound=Callable[..., Network])

NETWORKS: Entries[Callable[..., Network]] = Entries("network", "prune4rel.networks")


def register_network(name: str) -> Callable[[Maker], Maker]:
    """Add the decorated class or function to the list of networks.

    It takes ``(n_classes, *, shape, own options)`` and returns a `Network`; `shape` is that of one input, without
    the batch.
    """

    def add(maker: Maker) -> Maker:
        NETWORKS[name] = maker
        return maker

    return add


def list_networks(pattern: str | None = None) -> list[str]:
    """Names of the networks: all, or those that match a pattern.

    Besides them there is every model of timm as ``"timm/NAME"``. A pattern that starts so asks timm, which must be
    installed then: ``list_networks("timm/*resnet*")``.

    >>> list_networks()
    ['linear', 'mlp', 'preact-resnet18', 'small-cnn']
    >>> list_networks("*resnet*")
    ['preact-resnet18']
    """
    if pattern is not None and pattern.startswith(ZOO):
        from prune4rel.networks.zoo import list_models  # noqa: PLC0415 - the zoo is an extra

        return [f"{ZOO}{name}" for name in list_models(pattern.removeprefix(ZOO))]
    return NETWORKS.names(pattern)


def make(name: str, n_classes: int, **options: Any) -> Network:
    """Make a network by name, with fresh weights from PyTorch's global generator.

    Parameters
    ----------
    name
        One of `list_networks`, or ``"timm/NAME"`` for any model of timm (needs the extra ``prune4rel[vision]``).
    n_classes
        Number of classes C, the length of the logits.
    **options
        `shape`, the shape of one input without the batch, which every network takes ((3, 32, 32) unless told), and
        the network's own.

    Returns
    -------
    A `Network`: a module with `embed`, `classify` and `dim`.

    Examples
    --------
    >>> import torch
    >>> network = make("small-cnn", 10, shape=(3, 8, 8), width=4)
    >>> network(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 10])
    >>> make("smal-cnn", 10)
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown network 'smal-cnn'; did you mean 'small-cnn'? Known: linear, ...
    """
    if isinstance(name, str) and name.startswith(ZOO):
        from prune4rel.networks.zoo import TimmNetwork  # noqa: PLC0415 - the zoo is an extra

        return TimmNetwork(name.removeprefix(ZOO), n_classes, **options)
    maker = NETWORKS.look_up(name, f"{ZOO}NAME")
    taken = _options_of(maker)
    if taken is not None:
        refuse_unknown(f"network {name!r}", options, taken)
    return maker(n_classes, **options)


def make_from_file(name: object, n_classes: int, shape: tuple[int, ...], options: Mapping[str, Any]) -> Network:
    """Make a network as a file describes it: an option is one that the network has, a number or a word it knows.

    Where a training started (``pretrained``, ``checkpoint_path``) is left out: the weights lie beside the description.
    No option can be a path, so that nothing else is read.
    """
    from prune4rel.networks.zoo import MOST, START, check_options  # noqa: PLC0415 - one list of both kinds

    if not isinstance(name, str) or not isinstance(options, Mapping):
        raise InputError("a network is described by its name and by names and values of options")
    given = {option: value for option, value in options.items() if option not in START}
    if name.startswith(ZOO):
        check_options(name.removeprefix(ZOO), given)
        return make(name, n_classes, shape=shape, **given)
    maker = NETWORKS.look_up(name)
    known = options_of(maker)
    refuse_unknown(f"network {name!r}", given, [each for each in known if each != "shape"])
    for option, value in given.items():
        is_number = isinstance(value, bool | int | float) and -MOST <= value <= MOST
        if not (value == known[option] or (is_number and not isinstance(known[option], str))):
            raise InputError(f"network {name!r}: {option} cannot be {value!r:.60} in a file")
    return make(name, n_classes, shape=shape, **given)


def _options_of(maker: Callable[..., Network]) -> list[str] | None:
    """Names of the keyword-only options, or None where any is taken."""
    parameters = inspect.signature(maker).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return None
    return list(options_of(maker))
