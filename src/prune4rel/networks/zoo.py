"""Any model of timm, behind the same interface."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from torch import Tensor

from prune4rel.errors import InputError
from prune4rel.networks.network import Network, Shape, channels_of

PHOTO: Shape = (3, 224, 224)
"""Shape of one input where none is given: what most of these models were made for."""


class TimmNetwork(Network):
    """A timm model without its classifier, and a linear classifier of our own.

    Parameters
    ----------
    name
        timm's name of the model, ``"resnet50"``, say; ``"resnet50.a1_in1k"`` names its weights, too.
    n_classes
        Number of classes.
    shape
        Channels, height and width of one input. Models whose size is built in are built for it.
    **options
        Passed on to ``timm.create_model``: ``pretrained=True``, ``checkpoint_path=...``, ``drop_rate=0.2``, ...

    Raises
    ------
    InputError
        timm cannot be imported, has no such model, or refuses the options.
    """

    def __init__(self, name: str, n_classes: int, *, shape: Shape = PHOTO, **options: Any) -> None:
        channels = channels_of(shape, f"timm/{name}")
        body = _make_body(name, channels, shape[1:], options)
        dim = getattr(body, "head_hidden_size", None) or body.num_features
        super().__init__(int(dim), n_classes)
        self.body = body

    def embed(self, x: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into the model's pooled features, (B, d)."""
        features: Tensor = self.body(x)
        return features


def list_models(pattern: str) -> list[str]:
    """Names of timm's models that match a pattern, as timm spells them."""
    names: list[str] = _import_timm().list_models(pattern)
    return names


def _make_body(name: str, channels: int, size: Shape, options: dict[str, Any]) -> Any:
    timm = _import_timm()
    if not timm.is_model(name):
        close = get_close_matches(name.partition(".")[0], timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "timm.list_models() names them all"
        raise InputError(f"unknown network 'timm/{name}'; {hint}")
    wanted = {"num_classes": 0, "in_chans": channels, **options}
    try:
        if getattr(timm.get_pretrained_cfg(name), "fixed_input_size", False):
            wanted.setdefault("img_size", tuple(size))
        return timm.create_model(name, **wanted)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        offline = "; without a network, give the weights as checkpoint_path=FILE" * bool(options.get("pretrained"))
        raise InputError(f"network 'timm/{name}': timm could not make it ({error}){offline}") from error


def _import_timm() -> Any:
    try:
        return import_module("timm")
    except ImportError as error:
        raise InputError(
            f"networks named timm/NAME need timm, which cannot be imported here ({error}); "
            "install it with: pip install 'prune4rel[vision]'"
        ) from None
