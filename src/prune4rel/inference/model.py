"""A trained model on disk: weights, and all that is needed to use them."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor, nn

from prune4rel.atomic import write_together
from prune4rel.augment import FeatureView, PlainView, View
from prune4rel.contents import file_digest
from prune4rel.errors import InputError
from prune4rel.networks import make_from_file
from prune4rel.networks.zoo import SIZES
from prune4rel.reading import read_record, read_sealed, reading, seal
from prune4rel.storage import to_json

WEIGHTS, CARD = "model.safetensors", "model.json"
MOST_NETWORKS, LARGEST_SIDE = 64, 2**24


class Model(nn.Module):
    """One or several networks behind one face: inputs as they lie in a data set, probabilities out.

    Attributes
    ----------
    class_names
        C names, in the order of the probabilities.

    Examples
    --------
    >>> from prune4rel.networks import make
    >>> card = {"network": "mlp", "options": {"width": 8}, "shape": [4], "class_names": ["cat", "dog"],
    ...         "mean": [0.0] * 4, "std": [1.0] * 4}
    >>> model = Model([make("mlp", 2, shape=(4,), width=8)], card)
    >>> model.probabilities(np.zeros((3, 4), dtype=np.float32)).shape
    (3, 2)
    """

    def __init__(self, networks: list[nn.Module], card: Mapping[str, Any]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.card = dict(card)
        self.class_names: tuple[str, ...] = tuple(card["class_names"])
        self._view: View
        if len(card["shape"]) == 3:
            self._view = PlainView(tuple(card["mean"]), tuple(card["std"]))
        else:
            self._view = FeatureView(card["mean"], card["std"], standardise=True)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Turn normalised inputs (B, ...) into logits (B, C)."""
        return torch.stack([network(x) for network in self.networks]).mean(0)

    @torch.no_grad()
    def probabilities(self, inputs: NDArray[Any], batch: int = 512) -> NDArray[np.float32]:
        """Probabilities (n, C) of images (n, H, W, 3) uint8 or features (n, d)."""
        self._check(inputs)
        device = next(self.parameters()).device
        found = [np.empty((0, len(self.class_names)), dtype=np.float32)]
        for start in range(0, len(inputs), batch):
            rows = torch.tensor(np.asarray(inputs[start : start + batch])).to(device)
            rows = rows.permute(0, 3, 1, 2).contiguous() if rows.ndim == 4 else rows.float()
            seen = self._view(rows, torch.Generator())
            found.append(torch.softmax(self(seen), dim=1).cpu().numpy())
        return np.concatenate(found)

    def _check(self, inputs: NDArray[Any]) -> None:
        channels, *size = self.card["shape"]
        wanted, kind = ((*size, channels), "uint8") if size else ((channels,), "numbers")
        if inputs.shape[1:] != wanted or (size and inputs.dtype != np.uint8) or inputs.dtype.kind not in "biuf":
            raise InputError(
                f"the model takes {kind} of shape (n, {', '.join(map(str, wanted))}), not {inputs.dtype} of shape "
                f"{inputs.shape}"
            )

    def predict(self, inputs: NDArray[Any], batch: int = 512) -> NDArray[np.int64]:
        """Labels (n,) of images or features."""
        labels: NDArray[np.int64] = self.probabilities(inputs, batch).argmax(axis=1)
        return labels


def save_model(folder: Path, networks: nn.ModuleList, card: Mapping[str, Any]) -> None:
    """Write weights and card into a folder; the mean of the networks' logits is what the model says."""

    def write_card(part: Path) -> None:
        print_of_it = file_digest(weights["part"])
        text = to_json(seal({**card, "networks": len(networks), "sha256": print_of_it}), indent=1)
        part.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    def write_weights(part: Path) -> None:
        weights["part"] = part
        write_tensors(part, networks.state_dict())

    weights: dict[str, Path] = {}
    write_together({folder / WEIGHTS: write_weights, folder / CARD: write_card}, force=True)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, also those that share their memory, to a file others may read."""
    copies = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    path.write_bytes(save(copies))


def load_model(folder: str | Path, device: str = "cpu") -> Model:
    """Load a model that a training left behind.

    Parameters
    ----------
    folder
        The training's folder, or `model.safetensors` in it.
    device
        ``"cpu"``, ``"cuda"``, ...

    Returns
    -------
    Model
        In evaluation mode; `probabilities` and `predict` take inputs as they lie in the data set.
    """
    home = Path(folder)
    home = home.parent if home.name == WEIGHTS else home
    for path in (home / CARD, home / WEIGHTS):
        if not path.exists():
            raise InputError(f"{path}: no such file; is the training finished?")
    card = read_sealed(home / CARD, "card of a model")
    known = read_record(_Card, card, home / CARD)
    if known.sha256 and file_digest(home / WEIGHTS) != known.sha256:
        raise InputError(f"{home / WEIGHTS}: changed since it was written; train again, or put back what was there")
    with reading(home / WEIGHTS, "file of weights"):
        tensors = load_file(home / WEIGHTS)
    try:
        with reading(home, "model"):
            model = _build(card, known, tensors)
    except InputError as error:
        raise InputError(f"{home}: {CARD} and {WEIGHTS} do not go together ({error})") from None
    return model.to(device).eval()


@dataclass(frozen=True)
class _Card:
    """What a model's card says."""

    network: str
    options: Mapping[str, Any]
    shape: tuple[Annotated[int, (1, LARGEST_SIDE)], ...]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    networks: Annotated[int, (1, MOST_NETWORKS)]
    sha256: str = ""


def _build(card: Mapping[str, Any], known: _Card, tensors: Mapping[str, Tensor]) -> Model:
    """Make the networks of a card and fill them; nothing is allocated before shapes were compared with the weights."""
    shape = known.shape
    if len(shape) not in (1, 3):
        raise InputError(f"inputs cannot be of shape {shape}")
    if not known.class_names:
        raise InputError("class_names must be a list of names")
    if not (len(known.mean) == len(known.std) == shape[0]):
        raise InputError("mean and std must have a number for every channel or feature")

    def networks() -> Iterator[nn.Module]:
        for place in range(known.networks):
            made = make_from_file(known.network, len(known.class_names), shape, known.options)
            first = f"{place}."
            own = {name.removeprefix(first): each for name, each in tensors.items() if name.startswith(first)}
            _compare(made, own)
            yield made

    try:
        with torch.device("meta"):
            deque(networks(), maxlen=0)
    except (NotImplementedError, InputError):  # a few models need real memory to be made
        if known.options.keys() & SIZES:
            raise InputError(f"{known.network!r} cannot be made as large as its options say") from None
    model = Model(list(networks()), card)
    _compare(model.networks, tensors)
    model.networks.load_state_dict(tensors)
    return model


def _compare(networks: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    wanted = {name: tuple(tensor.shape) for name, tensor in networks.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            raise ValueError(f"{name} is of shape {found.get(name)}, not {wanted.get(name)}")
