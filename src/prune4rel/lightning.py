"""Lightning: a callback that finds wrong labels as a by-product of a training that happens anyway."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from prune4rel.errors import InputError
from prune4rel.torch.watcher import Watcher

if TYPE_CHECKING:
    from prune4rel.labels import Labels

__all__ = ["LabelsCallback"]


def _base() -> Any:
    """Return the class of callbacks of the Lightning that is in use, under its new name or its old."""
    names = sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda name: name not in sys.modules)
    for name in names:
        if find_spec(name.partition(".")[0]) is not None:
            return import_module(name).Callback
    return object


Callback = _base()


class LabelsCallback(Callback):  # type: ignore[valid-type,misc]
    """Remembers what the model said of every training example before it was taught, and writes `Labels` at the end.

    The training step, the data set and the model stay as they are. The order of batches is another one, as with
    another seed. What is remembered goes into Lightning's checkpoints: a training that goes on knows all of it.

    Parameters
    ----------
    output
        Where `Labels` are written when training ends: `.parquet` or `.csv`; None for nowhere.
    labels
        (n,) given labels of the training set, in ``range(C)``; found in the set itself unless told.
    class_names
        C names; those of the training set unless told.
    logits
        Name of the module whose output are the logits, such as ``"model.head"``; found out unless told.
    newest
        Least share of the newest prediction in the memory: 0 for fine-tuning, .3 for a training from scratch.
    force
        Replace what is at `output`.

    Attributes
    ----------
    labels
        What was found, `prune4rel.Labels`, after training.
    """

    def __init__(
        self,
        output: str | Path | None = "labels.parquet",
        *,
        labels: ArrayLike | None = None,
        class_names: Sequence[str] | None = None,
        logits: str | None = None,
        newest: float = 0.0,
        force: bool = False,
    ) -> None:
        if Callback is object:
            raise InputError("LabelsCallback needs Lightning, which is not installed: pip install lightning")
        super().__init__()
        self.watcher = Watcher(
            output, labels=labels, class_names=class_names, logits=logits, newest=newest, force=force
        )
        self.labels: Labels | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to listen."""
        loader = trainer.train_dataloader
        if isinstance(loader, list | tuple | dict) or loader is None:
            raise InputError("LabelsCallback needs one training loader: of several, which rows they hold is not known")
        if self.watcher.begin(pl_module, loader) and (fetcher := trainer.fit_loop._data_fetcher) is not None:  # noqa: SLF001
            iter(fetcher)  # it drew the first batches before anybody could note them

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Follow the loader: Lightning may have made another one for this epoch."""
        del pl_module
        self.watcher.follow(trainer.train_dataloader)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """Forget the last batch."""
        del trainer, pl_module, batch, batch_idx
        self.watcher.forget()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Take in what was said of a batch."""
        del trainer, pl_module, outputs, batch, batch_idx
        self.watcher.note()

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered, for Lightning's checkpoint."""
        return {} if self.watcher.memory is None else self.watcher.memory.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what a checkpoint holds."""
        self.watcher.remembered = state_dict

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Judge the labels, and write them."""
        del pl_module
        self.labels = self.watcher.finish(write=trainer.is_global_zero)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Stop listening."""
        del trainer, pl_module, exception
        self.watcher.stop()
