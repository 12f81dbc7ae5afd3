"""Hugging Face's Trainer: a callback that finds wrong labels as a by-product of a training that happens anyway."""

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

__all__ = ["LabelsTrainerCallback"]

_HERE = find_spec("transformers") is not None

TrainerCallback: Any = import_module("transformers").TrainerCallback if _HERE else object


class LabelsTrainerCallback(TrainerCallback):  # type: ignore[misc]
    """Remembers what the model said of every training example before it was taught, and writes `Labels` at the end.

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
        self._counting: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to listen."""
        del control
        if args.n_gpu > 1:
            raise InputError("one process that drives several GPUs splits batches; start one process a GPU (torchrun)")
        model, loader = kwargs["model"], kwargs["train_dataloader"]
        names = dict(getattr(model.config, "id2label", None) or {})
        if self.watcher.class_names is None and names and not all(n == f"LABEL_{i}" for i, n in names.items()):
            self.watcher.class_names = [names[number] for number in sorted(names)]
        self.watcher.begin(model, loader)
        if state.global_step and not args.ignore_data_skip and self.watcher.order is not None:
            steps = max(1, len(loader) // args.gradient_accumulation_steps)
            self.watcher.order.skip_batches(state.global_step % steps * args.gradient_accumulation_steps)
        self._counting = model.register_forward_hook(self._after_forward)

    def _after_forward(self, module: Any, inputs: Any, output: Any) -> None:
        del inputs, output
        if module.training:
            self.watcher.note()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Judge the labels, and write them."""
        del args, control, kwargs
        if self._counting is not None:
            self._counting.remove()
        self.labels = self.watcher.finish(write=state.is_world_process_zero)
