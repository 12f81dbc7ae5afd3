"""Hugging Face's Trainer: a callback that finds wrong labels as a by-product of a training that happens anyway."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from prune4rel.errors import InputError
from prune4rel.storage import read_arrays, write_arrays
from prune4rel.torch.watcher import Watcher

if TYPE_CHECKING:
    from prune4rel.labels import Labels

__all__ = ["LabelsTrainerCallback"]

_HERE = find_spec("transformers") is not None

TrainerCallback: Any = import_module("transformers").TrainerCallback if _HERE else object


class LabelsTrainerCallback(TrainerCallback):  # type: ignore[misc]
    """Remembers what the model said of every training example before it was taught, and writes `Labels` at the end.

    What is remembered lies in every checkpoint's folder, too: a training that goes on in its `output_dir` knows all.

    Parameters
    ----------
    output
        Where `Labels` are written when training ends: `.parquet` or `.csv`; None for nowhere.
    labels
        (n,) given labels of the training set, in ``range(C)``; its column ``label`` or ``labels`` unless told.
    class_names
        C names; those of the training set unless told.
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
        newest: float = 0.0,
        force: bool = False,
    ) -> None:
        if not _HERE:
            raise InputError(
                "LabelsTrainerCallback needs transformers, which is not installed: pip install 'transformers[torch]'"
            )
        super().__init__()
        self.watcher = Watcher(output, labels=labels, class_names=class_names, logits="", newest=newest, force=force)
        self.labels: Labels | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to listen."""
        del control
        if args.n_gpu > 1:
            raise InputError("one process that drives several GPUs splits batches; start one process a GPU (torchrun)")
        model, loader = kwargs["model"], kwargs["train_dataloader"]
        names = dict(getattr(getattr(model, "config", None), "id2label", None) or {})
        if self.watcher.class_names is None and names and not all(n == f"LABEL_{i}" for i, n in names.items()):
            self.watcher.class_names = [names[number] for number in sorted(names)]
        kept = _kept(args, state)
        if kept.is_file():
            self.watcher.remembered = {name: np.array(value) for name, value in read_arrays(kept).items()}
        elif state.global_step:
            warnings.warn(f"{kept} is not there: predictions made before this checkpoint do not count", stacklevel=2)
        self.watcher.begin(model, loader)
        if state.global_step and not args.ignore_data_skip and self.watcher.order is not None:
            together = args.gradient_accumulation_steps
            steps = max(1, -(-len(loader) // together))
            self.watcher.order.skip_batches(state.global_step % steps * together)

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take in what was said of a batch whose gradients are added to those of the next."""
        del args, state, control, kwargs
        self.watcher.note()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take in what was said of a batch."""
        del args, state, control, kwargs
        self.watcher.note()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Put what is remembered into the checkpoint's folder."""
        del control, kwargs
        if self.watcher.memory is None:
            return
        remembered = self.watcher.memory.state_dict()
        if state.is_world_process_zero and (kept := _kept(args, state)).parent.is_dir():
            write_arrays(kept, {name: value.numpy() for name, value in remembered.items() if len(value)}, force=True)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Judge the labels, and write them."""
        del args, control, kwargs
        self.labels = self.watcher.finish(write=state.is_world_process_zero)


def _kept(args: Any, state: Any) -> Path:
    """Return where a checkpoint keeps what is remembered."""
    return Path(args.output_dir, f"checkpoint-{state.global_step}", "label_memory.safetensors")
