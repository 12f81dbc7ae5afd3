"""The image side of any model of OpenCLIP."""

from pathlib import Path
from typing import TYPE_CHECKING

from prune4rel.encoders.encoder import require
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.model2vec import no_weights
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError, nearest

if TYPE_CHECKING:
    from prune4rel.encoders.torch_images import TorchImages


@register_encoder("open-clip/NAME", kind="images", extra="open-clip")
def open_clip(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "TorchImages":
    """Image side of any model of OpenCLIP; ``open-clip/NAME/TAG`` names the hub's weights, too."""
    require("torch", f"the encoder open-clip/{which}", "open-clip")
    from torch import nn  # noqa: PLC0415 - needs PyTorch

    from prune4rel.encoders.torch_images import TorchImages  # noqa: PLC0415 - needs PyTorch
    from prune4rel.networks.weights import matched, read_tensors  # noqa: PLC0415 - needs PyTorch
    from prune4rel.networks.zoo import mend_torchvision  # noqa: PLC0415 - needs PyTorch

    mend_torchvision()
    library = require("open_clip", f"the encoder open-clip/{which}", "open-clip")
    name, _, tag = which.partition("/")
    if name not in library.list_models():
        raise InputError(f"unknown encoder 'open-clip/{name}'; {nearest(name, library.list_models())}", "encoder")
    tags = library.list_pretrained_tags_by_model(name)
    if weights is None and (not tag or tag not in tags):
        raise InputError(
            f"open-clip/{which}: name the weights, as in open-clip/{name}/{tags[0] if tags else 'TAG'}, or pass a "
            f"file (--weights FILE). There are: {', '.join(tags) or 'none'}",
            "weights",
        )
    sized = {} if size is None else {"force_image_size": size}
    try:
        model = library.create_model(name, pretrained=None if weights is not None else tag, **sized)
    except Exception as error:  # noqa: BLE001 - the hub's errors are of many kinds
        raise InputError(no_weights(f"open-clip/{which}", weights, error), "weights") from None
    if weights is not None:
        model.load_state_dict(matched(model.state_dict(), read_tensors(weights), weights))
    facts = library.get_model_preprocess_cfg(model)
    wide = facts["size"] if isinstance(facts["size"], int) else facts["size"][0]
    stretch = facts.get("resize_mode") == "squash"
    sight = Sight(
        size=wide,
        fit="stretch" if stretch else "crop",
        interpolation=facts.get("interpolation", "bicubic"),
        mean=tuple(facts["mean"]),
        std=tuple(facts["std"]),
    )

    class ImageSide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.visual = model.visual

        def forward(self, images: "nn.Module") -> "nn.Module":
            found: nn.Module = self.visual(images)
            return found

    return TorchImages(f"open-clip/{which}", ImageSide(), sight, device)
