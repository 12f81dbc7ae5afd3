"""`Watcher`: what callbacks of training frameworks share: rows of a batch, what the model said of them, labels."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor, nn

from prune4rel.errors import InputError, nearest
from prune4rel.labels import Labels
from prune4rel.torch.label_memory import LabelMemory
from prune4rel.torch.wrappers import RowOrder, given_labels


class Watcher:
    """Keeps the memory of predictions of a model that somebody else trains, and writes `Labels` at the end.

    Parameters
    ----------
    output
        Where `Labels` are written when training ends, `.parquet` or `.csv`; None for nowhere.
    labels
        (n,) given labels of the training set; those that the set itself says, unless told.
    class_names
        C names; those of the training set, unless told.
    logits
        Name of the module whose output are the logits, such as ``"head"``; the last output of shape (B, C) in a batch,
        unless told.
    newest
        Least share of the newest prediction in the memory; see `LabelMemory`.
    force
        Replace what is at `output`.
    """

    def __init__(
        self,
        output: str | Path | None,
        *,
        labels: ArrayLike | None,
        class_names: Sequence[str] | None,
        logits: str | None,
        newest: float,
        force: bool,
    ) -> None:
        self.output = None if output is None else Path(output)
        self.given, self.class_names, self.logits = labels, class_names, logits
        self.newest, self.force = newest, force
        self.memory: LabelMemory | None = None
        self.order: RowOrder | None = None
        self.said: Tensor | None = None
        self.remembered: Mapping[str, Any] | None = None
        """What a checkpoint holds of an earlier part of this training."""
        self._hooks: list[Any] = []

    def begin(self, model: nn.Module, loader: Any) -> bool:
        """Look at the training set, and listen to the model; returns whether the loader is watched anew."""
        batches = getattr(getattr(loader, "base_dataloader", loader), "batch_sampler", None)
        fresh = not isinstance(batches, RowOrder)
        self.follow(loader)
        if self.memory is None:
            given, names = (self.given, None) if self.given is not None else given_labels(loader.dataset)
            if len(loader.dataset) != len(given):  # type: ignore[arg-type]
                raise InputError(
                    f"labels: there are {len(given)}, "  # type: ignore[arg-type]
                    f"but the training set has {len(loader.dataset)} examples",
                    "labels",
                )
            self.memory = LabelMemory(given, class_names=self.class_names or names, newest=self.newest)
        if self.remembered is not None:
            self.memory.load_state_dict(self.remembered)
            self.remembered = None
        self._listen(model)
        return fresh

    def follow(self, loader: Any) -> None:
        """Note which rows a loader draws from now on."""
        self.order = RowOrder.of(loader)

    def _listen(self, model: nn.Module) -> None:
        self.stop()
        modules = dict(model.named_modules())
        if self.logits is not None and self.logits not in modules:
            raise InputError(f"the model has no module {self.logits!r}; {nearest(self.logits, modules)}", "logits")
        watched = modules.values() if self.logits is None else [modules[self.logits]]
        self._hooks = [module.register_forward_hook(self._hear) for module in watched]

    def _hear(self, module: nn.Module, inputs: Any, output: Any) -> None:
        del inputs
        if module.training and self.memory is not None:
            said = logits_in(output, self.memory.n_classes)
            if said is not None:
                self.said = said.detach()

    def forget(self) -> None:
        """Forget what was said: a new batch begins."""
        self.said = None

    def note(self) -> None:
        """Take in what was said of the batch that just went through."""
        if self.memory is None or self.order is None:
            return
        rows = self.order.next_rows()
        if self.said is None:
            self.stop()
            raise InputError(
                f"no module of the model returned logits of shape (batch, {self.memory.n_classes}); "
                "name the one that does: logits='...'",
                "logits",
            )
        if len(rows) != len(self.said):
            raise InputError(
                f"a batch has {len(rows)} rows, but {len(self.said)} predictions; name the module that gives one a row "
                "with logits='...', or keep a prune4rel.torch.LabelMemory in your own training step",
                "logits",
            )
        self.memory.add(rows, self.said)
        self.said = None

    def stop(self) -> None:
        """Stop listening."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def finish(self, *, write: bool = True) -> Labels | None:
        """Stop listening, judge the labels, and write them; None where nothing was trained."""
        self.stop()
        if self.memory is None or not bool((self.memory.memory.seen > 0).any()):
            warnings.warn("nothing was trained on, so nothing is known of its labels", stacklevel=3)
            return None
        found = self.memory.to_labels()
        if write and self.output is not None:
            found.save(self.output, force=self.force)
        return found


def logits_in(output: Any, n_classes: int) -> Tensor | None:
    """Return the logits (B, C) in what a module returned: a tensor, or one in a tuple, a dict or an object.

    >>> import torch
    >>> logits_in({"loss": torch.tensor(1.0), "logits": torch.zeros(4, 3)}, 3).shape
    torch.Size([4, 3])
    >>> logits_in(torch.zeros(4, 5), 3) is None
    True
    """
    named = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    places = [output, named, *(output if isinstance(output, tuple | list) else ())]
    for place in places:
        if isinstance(place, Tensor) and place.ndim == 2 and place.shape[1] == n_classes and place.is_floating_point():
            return place
    return None
