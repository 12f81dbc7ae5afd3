"""What a training came to and leaves behind: a model, a corrected label for every example, numbers for trackers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prune4rel.contents import Content, contents_of
from prune4rel.errors import InputError, nearest
from prune4rel.inference.model import CARD, WEIGHTS, save_model
from prune4rel.judging.predictions import NOBODY, judge_predictions
from prune4rel.labels import Labels
from prune4rel.machine import Clock
from prune4rel.reading import AnyFloat, read_record, read_sealed, read_text, seal
from prune4rel.storage import to_json, write_parquet, write_text, write_whole
from prune4rel.training.hyperparameters import shape_of
from prune4rel.training.trainer import Trainer

Numbers = NDArray[np.int64]
RESULT = "result.json"
CORRECTED = "corrected_labels.parquet"


@dataclass(frozen=True)
class Result:
    """Numbers of one training. Accuracies lie between 0 and 1; None where they cannot be known.

    Parameters
    ----------
    test_accuracy
        On the test split, of the last epoch: the result.
    best_accuracy
        The best epoch that was looked at. Choosing it would be choosing by the test split; for the curious.
    relabel_accuracy
        Share of the whole training split that the model gives its true label.
    self_correction
        The same among the examples trained on whose given label is wrong.
    subset_noise
        Share of wrong labels among the examples trained on.
    labels_changed
        How many labels of the whole training split are corrected.
    size, epochs
        Examples trained on, and how often; the last epoch may not be a whole one.
    seconds
        Time by step.
    history
        One entry an epoch: epoch, lr, loss, ...
    notes
        What looked odd.
    files
        What the training left behind, file by file, as it was written.
    wrong_label_ap
        Average precision of finding wrong labels in the whole training split by their scores.
    steps
        How many steps it had, which count as in `Training.spent`; None where that was not written down.
    """

    test_accuracy: float | None
    best_accuracy: float | None
    relabel_accuracy: float | None
    self_correction: float | None
    subset_noise: float | None
    labels_changed: int
    size: int
    epochs: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Mapping[str, AnyFloat], ...] = ()
    notes: tuple[str, ...] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    wrong_label_ap: float | None = None
    steps: int | None = None

    def accuracies(self) -> dict[str, float | None]:
        """Return the numbers a training is judged by; the best epoch is none of them."""
        names = ("test_accuracy", "relabel_accuracy", "self_correction", "wrong_label_ap")
        return {name: getattr(self, name) for name in names}

    def save(self, folder: Path) -> None:
        """Write `result.json` into a folder."""
        write_text(folder / RESULT, to_json(seal(asdict(self)), indent=1) + "\n", force=True)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        path = Path(folder) / RESULT
        if not path.exists():
            raise InputError(f"{path}: no such file; is the training finished?")
        return read_record(cls, read_sealed(path, "result of a training"), path)


def labels_of(trainer: Trainer, logits: Tensor) -> Labels:
    """Judge the labels of the whole training split, out of sample.

    A learner that has them judged beforehand goes by that. Of all others, those that were trained on are judged by the
    memory of what was said of them before they were learnt from; the rest by the final model, which has not seen them.

    Parameters
    ----------
    trainer
        Trained, with a memory.
    logits
        (n, C) of the final model for the training split; a row of NaN where an example could not be read.
    """
    train, memory, subset = trainer.dataset.train, trainer.training.memory, trainer.subset
    about = {"made_by": "train", "learner": trainer.plan.learner, "trained_on": len(subset)}
    names = tuple(map(_printable, trainer.dataset.class_names))
    if (judged := trainer.training.learner.setting.judged) is not None:
        return Labels(
            given_label=train.labels,
            predicted_label=judged.predicted_label,
            label_score=judged.label_score,
            is_label_issue=judged.is_label_issue,
            confidence=judged.confidence,
            class_names=names,
            verified=train.verified,
            removed=train.removed,
            ids=_names(train.ids),
            source="judging" if train.verified is None else np.where(train.verified, "person", "judging"),
            noise_rate=judged.noise_rate if np.isfinite(judged.noise_rate) else None,
            noise_matrix=judged.noise_matrix,
            about=about,
        )
    chances = torch.softmax(logits, dim=1).numpy()
    speakers = np.where(np.isnan(chances).any(axis=1), NOBODY, 1)
    if memory is not None:
        seen = memory.seen.cpu().numpy() > 0
        chances[subset[seen]] = memory.all()[seen]
        speakers[subset] = np.where(seen, 0, NOBODY)  # a word on what one has learnt from is no evidence
    return judge_predictions(
        np.nan_to_num(chances),
        train.labels,
        names,
        speakers=speakers,
        verified=train.verified,
        removed=train.removed,
        ids=_names(train.ids),
        about=about,
    )


def _names(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    return np.array([_printable(name) for name in ids.tolist()]) if ids is not None and ids.dtype.kind == "U" else ids


def _printable(text: str) -> str:
    """Return a text as it is, but for bytes of a file name that are no text: those are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_corrected(labels: Labels, path: Path) -> None:
    """Write `Labels` as a table that `Labels.load` reads, with a further column `changed`."""
    table = labels.to_arrow()
    table = table.append_column("changed", pa.array(labels.corrected_label != labels.given_label))
    write_whole(path, lambda part: write_parquet(table, part), force=True)


def finish(
    trainer: Trainer, home: Path, history: list[dict[str, float]], clock: Clock, beside: Sequence[str] = ()
) -> Result:
    """Correct the labels of the whole training split, write model, labels and result, and sum up.

    Parameters
    ----------
    trainer
        Trained.
    home
        The training's folder.
    history
        The numbers of every epoch.
    clock
        Knows what the steps before took.
    beside
        Names of further files of the training that are whole by now.
    """
    train, clean = trainer.dataset.train, trainer.dataset.train.clean_labels
    logits = trainer.predict(train, title="correcting labels")
    labels = labels_of(trainer, logits)
    clock.lap("correcting")
    unread = int(torch.isnan(logits).any(1).sum())
    left_out = f"{unread} of {len(logits)} images could not be read; their labels are as given"
    looks = [numbers["test_accuracy"] for numbers in history if "test_accuracy" in numbers]
    result = Result(
        test_accuracy=looks[-1] if looks else None,
        best_accuracy=max(looks, default=None),
        **_against_truth(logits, train.labels, clean, trainer.subset),
        wrong_label_ap=None if clean is None else average_precision(labels.label_score, labels.given_label != clean),
        labels_changed=int((labels.corrected_label != train.labels).sum()),
        size=len(trainer.subset),
        epochs=trainer.training.epoch,
        steps=trainer.training.spent,
        seconds=clock.laps,
        history=tuple(history),
        notes=(*trainer.notes, *([left_out] if unread else [])),
    )
    if trainer.training.learner.ranks.rank == 0:
        _write_model(trainer, home)
        write_corrected(labels, home / CORRECTED)
        result = replace(result, files=contents_of(home, only=(WEIGHTS, CARD, CORRECTED, *beside)))
        result.save(home)  # last: where it is, everything is
    return result


def _against_truth(logits: Tensor, given: Numbers, clean: Numbers | None, subset: Numbers) -> dict[str, Any]:
    if clean is None:
        return dict.fromkeys(("relabel_accuracy", "self_correction", "subset_noise"))
    return {
        "relabel_accuracy": accuracy(logits, clean),
        "self_correction": self_correction(logits[subset], given[subset], clean[subset]),
        "subset_noise": float((given[subset] != clean[subset]).mean()),
    }


def _write_model(trainer: Trainer, home: Path) -> None:
    plan, plain = trainer.plan, trainer.views["plain"]
    card = {
        "network": plan.network,
        "options": dict(plan.network_options),
        "shape": list(shape_of(trainer.dataset)),
        "class_names": list(trainer.dataset.class_names),
        "mean": np.asarray(plain.mean, dtype=np.float64).tolist(),  # type: ignore[attr-defined]
        "std": np.asarray(plain.std, dtype=np.float64).tolist(),  # type: ignore[attr-defined]
        "learner": plan.learner,
    }
    with trainer.training.averaged():
        save_model(home, nn.ModuleList(trainer.training.learner.model_networks()), card)


def accuracy(logits: Tensor, labels: Numbers) -> float | None:
    """Share of examples whose largest logit is that of their label; None where there are none.

    Examples that could not be read, whose logits are NaN, do not count.

    >>> accuracy(torch.tensor([[1.0, 0.0], [1.0, 0.0], [torch.nan, torch.nan]]), np.array([0, 1, 0]))
    0.5
    """
    known = ~torch.isnan(logits).any(1).numpy()
    return float((logits.argmax(1).numpy() == labels)[known].mean()) if known.any() else None


def self_correction(logits: Tensor, given: Numbers, clean: Numbers) -> float | None:
    """Share of the wrongly labelled examples that the model gives their true label; None where none is wrong.

    >>> logits = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> self_correction(logits, given=np.array([1, 0, 0]), clean=np.array([0, 1, 0]))
    0.5
    """
    wrong = given != clean
    return accuracy(logits[torch.from_numpy(wrong)], clean[wrong])


def average_precision(scores: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float | None:
    """Average precision of finding wrong labels by their scores, low first; None where none is wrong.

    Labels of one score are found together.

    >>> average_precision(np.array([0.1, 0.9, 0.4, 0.3]), np.array([True, False, True, False]))
    0.8333333333333333
    """
    if not wrong.any():
        return None
    order = np.argsort(scores, kind="stable")
    last = np.flatnonzero(np.r_[np.diff(scores[order]) != 0, True])  # of each score
    hits = np.cumsum(wrong[order])[last]
    return float((np.diff(hits, prepend=0) * hits / (last + 1)).sum() / hits[-1])


class Tracker(ABC):
    """Something that is told numbers."""

    @abstractmethod
    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Take the numbers of an epoch."""

    @abstractmethod
    def close(self) -> None:
        """Finish."""


TENSORBOARD = "tensorboard"


class TensorBoard(Tracker):
    """Event files under FOLDER/tensorboard."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        del config
        module = _need("torch.utils.tensorboard", "tensorboard")
        self.writer = module.SummaryWriter(str(folder / TENSORBOARD))

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Write scalars."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Flush."""
        self.writer.close()


class MLflow(Tracker):
    """A run of MLflow, the same one after a restart; where it goes is MLflow's business (MLFLOW_TRACKING_URI)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.mlflow = _need("mlflow", "mlflow")
        before = _read_name(folder / MLFLOW_RUN)
        if before is not None:
            self.mlflow.start_run(run_id=before)
            return
        run = self.mlflow.start_run(run_name=folder.name)
        _write_name(folder / MLFLOW_RUN, run.info.run_id)
        self.mlflow.log_params({name: str(value)[:500] for name, value in config.items()})

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.mlflow.log_metrics(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.mlflow.end_run()


class WandB(Tracker):
    """A run of Weights & Biases, the same one after a restart."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        wandb = _need("wandb", "wandb")
        name = _read_name(folder / WANDB_RUN) or uuid4().hex[:12]
        _write_name(folder / WANDB_RUN, name)
        self.run = wandb.init(
            project="prune4rel", name=folder.name, config=dict(config), id=name, resume="allow", dir=str(folder)
        )

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.run.log(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.run.finish()


MLFLOW_RUN, WANDB_RUN = "mlflow_run.txt", "wandb_run.txt"
RUN_NAMES = (MLFLOW_RUN, WANDB_RUN)
"""Files that keep the names of runs, for a training that is gone on with."""


def _read_name(path: Path) -> str | None:
    return read_text(path, "name of a run", 4096).strip() if path.exists() else None


def _write_name(path: Path, name: str) -> None:
    write_text(path, name + "\n", force=True)


TRACKERS: Mapping[str, type[Any]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}


class Trackers:
    """Several trackers as one. One that cannot begin is an error; one that fails later must not end a training.

    Parameters
    ----------
    names
        Which of `TRACKERS`.
    folder
        The training's folder; its name names the run.
    config
        What was trained how.
    say
        Told which tracker failed, and why.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        folder: Path,
        config: Mapping[str, Any],
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        for name in names:
            if name not in TRACKERS:
                raise InputError(f"unknown tracker {name!r}; {nearest(name, TRACKERS)}", "track")
        self._say = say
        self._all: dict[str, Tracker] = {}
        try:
            for name in dict.fromkeys(names):
                self._all[name] = TRACKERS[name](folder, config)
        except Exception as error:
            self.close()
            if isinstance(error, InputError):
                raise
            raise InputError(f"tracking with {name} cannot begin: {_reason(error)}", "track") from error

    def log(self, numbers: Mapping[str, float | None], epoch: int) -> None:
        """Tell all of them what is known."""
        told = {name: value for name, value in numbers.items() if name != "epoch" and value is not None}
        for name, tracker in list(self._all.items()):
            if not self._try(name, "failed; going on without it", partial(tracker.log, told, epoch)):
                del self._all[name]

    def close(self) -> None:
        """Finish all of them."""
        for name, tracker in self._all.items():
            self._try(name, "could not be finished", tracker.close)
        self._all.clear()

    def _try(self, name: str, trouble: str, act: Callable[[], object]) -> bool:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - a server that is down may raise anything
            self._say(f"note: tracking with {name} {trouble} ({_reason(error)})")
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]


def _need(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"tracking with {package} needs the package, which cannot be imported here ({error}); install it with: "
            f"pip install {package} (or pip install 'prune4rel[track]' for all trackers)"
        ) from None
