"""The network that an earlier run trained."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prune4rel.encoders.encoder import require
from prune4rel.encoders.family import register_encoder
from prune4rel.encoders.sight import Sight
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from prune4rel.encoders.torch_images import TorchImages


@register_encoder("run:FOLDER", kind="images", extra="train")
def open_trained(
    which: str, *, weights: Path | None = None, size: int | None = None, device: str = "auto"
) -> "TorchImages":
    """Network that `prune4rel run` or `prune4rel train` trained on images, without its classifier."""
    require("torch", f"the encoder run:{which}", "train")
    import torch  # noqa: PLC0415 - needs PyTorch
    from torch import Tensor, nn  # noqa: PLC0415 - needs PyTorch

    from prune4rel.encoders.torch_images import TorchImages  # noqa: PLC0415 - needs PyTorch
    from prune4rel.inference.model import load_model  # noqa: PLC0415 - needs PyTorch

    if weights is not None:
        raise InputError("run:FOLDER holds its weights itself; leave weights out", "weights")
    model = load_model(_home(Path(which).expanduser()))
    channels, *sides = model.card["shape"]
    if len(sides) != 2 or channels != 3 or sides[0] != sides[1]:
        raise InputError(f"{which}: was trained on inputs of shape {model.card['shape']}; expected square RGB images")
    if size not in (None, sides[0]):
        raise InputError(f"{which}: takes images of {sides[0]} x {sides[0]} alone; leave size out", "size")

    class Embeddings(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.networks: Any = model.networks

        def forward(self, images: Tensor) -> Tensor:
            return torch.cat([network.embed(images) for network in self.networks], dim=1)

    sight = Sight(size=sides[0], mean=tuple(model.card["mean"]), std=tuple(model.card["std"]))
    return TorchImages(f"run:{which}", Embeddings(), sight, device)


def _home(folder: Path) -> Path:
    """Return the folder of the one training in a run's folder, or the folder itself if it is a training's."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", "encoder")
    found = (
        [folder]
        if (folder / "model.json").is_file()
        else sorted(path.parent for path in (folder / "trainings").glob("*/model.json"))
    )
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise InputError(
            f"{folder}: which training? Name its folder: {folder}/trainings/NAME. There are: {names}", "encoder"
        )
    return found[0]
