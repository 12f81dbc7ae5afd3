"""Any model of timm."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prune4rel.encoders.encoder import require
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.encoders.torch_images import TorchImages


@register_encoder("timm/NAME", kind="images", extra="vision")
def open_timm(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "TorchImages":
    """Any model of timm, pooled features; weights by name from the hub.

    The model's own preprocessing is used: size, crop, interpolation, mean and std. The weights of
    ``timm/tf_efficientnet_lite0`` come with the extra `vision` and need no network.
    """
    require("torch", f"the encoder timm/{which}", "vision")
    from prune4rel.encoders.torch_images import TorchImages  # noqa: PLC0415 - needs PyTorch
    from prune4rel.networks.zoo import WEIGHTS, import_timm, make_body, packaged_weights  # noqa: PLC0415 - an extra

    timm = import_timm()
    config = timm.get_pretrained_cfg(which) if timm.is_model(which) else None
    size = size or (224 if config is None else config.input_size[1])
    source = weights or packaged_weights(which)
    options: dict[str, Any] = {"pretrained": True} if source is None else {WEIGHTS: str(source)}
    try:
        module = make_body(which, 3, (size, size), options)
    except InputError as error:
        if source is not None or config is None:
            raise
        raise InputError(_no_weights(which, error), "weights") from error
    own = timm.data.resolve_model_data_config(module)
    sight = Sight(
        size=size,
        crop=own["crop_pct"],
        fit="stretch" if own["crop_mode"] == "squash" else "crop",
        interpolation=own["interpolation"] if own["interpolation"] in ("bilinear", "lanczos") else "bicubic",
        mean=tuple(own["mean"]),
        std=tuple(own["std"]),
    )
    return TorchImages(f"timm/{which}", module, sight, device)


def _no_weights(which: str, error: InputError) -> str:
    reason = str(error.__cause__ or error).strip().partition("\n")[0][:200]
    return (
        f"the weights of timm/{which} cannot be had from the model hub ({reason}); without a network, fetch them "
        "elsewhere and pass the file: weights=FILE (--weights FILE)"
    )
