"""`train`: a noise-robust learner on a subset, from a plan to a model and corrected labels."""

import shutil
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from prune4rel.atomic import make_folder, remove_dead, sync
from prune4rel.contents import damage_of
from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.inference.model import CARD, WEIGHTS
from prune4rel.loading.schedule import Ranks
from prune4rel.lock import only_one
from prune4rel.machine import Clock
from prune4rel.progress import Advance, Progress
from prune4rel.reading import read_json
from prune4rel.storage import check_writable, to_json, write_text
from prune4rel.training.checkpoint import Checkpoints, Saver
from prune4rel.training.hyperparameters import TrainingPlan, identity_of, make_plan, resolve_subset
from prune4rel.training.result import CORRECTED, RESULT, RUN_NAMES, TENSORBOARD, Result, Trackers, accuracy, finish
from prune4rel.training.trainer import Trainer, explaining_memory, listener_of

CONFIG, STATES = "training.json", "checkpoints"


def usual_learner(kind: str, network: str | None = None, *, whole: bool) -> str:
    """Return who is trained unless told, by what examples are, and whether on the whole set or a part of it.

    On features, unless a network is named, who learns what labels are judged to be; else on everything who selects
    labels while training, and on a subset the paper's.

    >>> usual_learner("features", whole=True), usual_learner("images", whole=True), usual_learner("images", whole=False)
    ('logistic', 'trust', 'sop+')
    """
    if kind == "features" and network is None:
        return "logistic"
    return "trust" if whole else "sop+"


def train(
    dataset: Dataset,
    subset: ArrayLike | None = None,
    *,
    folder: str | Path,
    learner: str | None = None,
    plan: TrainingPlan | None = None,
    device: str = "auto",
    evaluate_every: int | None = None,
    save_every: float = 60.0,
    restart: bool = False,
    track: tuple[str, ...] = (),
    skip_broken: bool = False,
    progress: bool | Progress = False,
    ranks: Ranks | None = None,
    **options: Any,
) -> Result:
    """Train a learner on some examples; leave a model and corrected labels for all of them behind.

    The same call again goes on where a killed one stopped, and ends in the same weights; a finished one is not
    repeated.

    Parameters
    ----------
    dataset
        What to learn; its test split, if any, is only looked at.
    subset
        (m,) numbers of training examples, such as ``selection.indices``; all unless told.
    folder
        Where everything goes: `metrics.jsonl`, `result.json`, `model.safetensors`, `corrected_labels.parquet`.
    learner, plan, **options
        A plan, or what `make_plan` takes: `learner_options`, `network`, `seed`, `epochs`, `batch`, `lr`, ... The
        learner is that of `usual_learner` unless told.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    evaluate_every
        Epochs between looks at the test split; a twentieth of the training unless told.
    save_every
        Seconds between checkpoints.
    restart
        Begin anew, whatever the folder holds.
    track
        ``"tensorboard"``, ``"mlflow"``, ``"wandb"``.
    skip_broken
        Go on without image files that cannot be read.
    progress
        True for lines on standard error, or a `Progress` of your own.
    ranks
        Given by `training.distributed` where several processes train together.

    Returns
    -------
    Result
        Accuracies and what was changed.

    Examples
    --------
    >>> import tempfile
    >>> from prune4rel.data import load_dataset
    >>> with tempfile.TemporaryDirectory() as name:
    ...     result = train(load_dataset("digits"), range(200), folder=name, epochs=1, device="cpu")
    ...     print(*sorted(path.name for path in Path(name).glob("*.*")))
    corrected_labels.parquet metrics.jsonl model.json model.safetensors result.json speed.jsonl training.json
    >>> result.size, result.epochs
    (200, 1)
    """
    learner = learner or usual_learner(dataset.kind, options.get("network"), whole=subset is None)
    plan = plan or make_plan(dataset, learner, **options)
    if evaluate_every is not None and evaluate_every < 1:
        raise InputError(f"evaluate_every must be 1 or more epochs, not {evaluate_every}", "evaluate_every")
    if not save_every >= 0:
        raise InputError(f"save_every must be 0 or more seconds, not {save_every}", "save_every")
    rows = resolve_subset(dataset, subset)
    home, ranks = Path(folder), ranks or Ranks()
    listener = listener_of(progress, ranks)
    states = Checkpoints(home / STATES, identity_of(plan, dataset, rows))
    ranks.check_alike(to_json(states.identity), "training to run")
    if ranks.rank == 0:
        _check_place(home)
    with only_one(home) if ranks.rank == 0 else nullcontext():
        if ranks.rank == 0:
            _open(home, states, listener, restart=restart)
        ranks.barrier()
        if (home / RESULT).exists():
            states.clear()
            listener.say(f"{home}: finished before; nothing to do (begin anew with --restart)")
            return Result.load(home)
        clock = Clock()
        dataset = replace(dataset, skip_broken=skip_broken or dataset.skip_broken)
        trainer = Trainer(dataset, rows, plan, remember=True, device=device, ranks=ranks, progress=listener)
        clock.lap("loading")
        if ranks.rank == 0:
            make_folder(home)  # only once it is sure to begin
            write_text(home / CONFIG, to_json(states.identity, indent=1) + "\n", force=True)
        tracked = track if ranks.rank == 0 else ()
        with trainer.settings(), Trackers(tracked, home, plan.as_dict(), listener.say) as trackers:
            epochs = Epochs(trainer, home, Saver(trainer.training, states, save_every), trackers, evaluate_every)
            explaining_memory(trainer, epochs.run)
            clock.lap("training")
            if ranks.rank == 0:
                for name in (METRICS, SPEED):
                    sync(home / name)
            result = finish(trainer, home, epochs.history, clock, (CONFIG, METRICS))
            trackers.log(result.accuracies(), result.epochs - 1)
        if ranks.rank == 0:
            states.clear()
        return result


def _check_place(home: Path) -> None:
    """See to it that there can be a folder."""
    if home.exists() and not home.is_dir():
        raise InputError(f"{home}: is a file; a training needs a folder")
    check_writable(home / CONFIG if home.exists() else home, force=True)


def _open(home: Path, states: Checkpoints, listener: Progress, *, restart: bool) -> None:
    """See to it that what a folder holds is of the same training, and whole."""
    remove_dead(home, held=True)
    if restart:
        _clear(home, states)
    if (home / RESULT).exists() and (trouble := _damage_of(home)) is not None:
        listener.say(f"{trouble}; training again")
        _clear(home, states)
    if (home / CONFIG).exists() or (home / RESULT).exists():
        try:
            read_json(home / CONFIG)
        except InputError as error:  # what there is to go on from says which training it is of, too
            if (home / RESULT).exists():
                raise InputError(f"{error}; begin anew with --restart (restart=True)") from None
            listener.say(f"{error}; it is written anew")
            (home / CONFIG).unlink()
            return
        states.check_same(home / CONFIG)


def _clear(home: Path, states: Checkpoints) -> None:
    """Remove everything of a training."""
    states.clear()
    shutil.rmtree(home / TENSORBOARD, ignore_errors=True)
    for name in (RESULT, CONFIG, CORRECTED, WEIGHTS, CARD, METRICS, SPEED, *RUN_NAMES):
        (home / name).unlink(missing_ok=True)


def _damage_of(home: Path) -> str | None:
    """Say what is not as a finished training left it, or None."""
    try:
        return damage_of(home, Result.load(home).files)
    except InputError as error:
        return str(error)


METRICS, SPEED = "metrics.jsonl", "speed.jsonl"
EVALUATIONS = 20
"""How often a training looks at the test split, unless told."""


class Epochs:
    """Runs what is left of a training.

    Parameters
    ----------
    trainer
        What to train.
    home
        Where `metrics.jsonl` goes, which is the same whether the training was interrupted or not, and `speed.jsonl`,
        which tells how fast it was.
    saver
        Saves the training on the way.
    trackers
        Told the same numbers.
    evaluate_every
        Epochs between looks at the test split.

    Attributes
    ----------
    history
        The numbers of every epoch.
    """

    def __init__(
        self, trainer: Trainer, home: Path, saver: Saver, trackers: Trackers, evaluate_every: int | None = None
    ) -> None:
        self.trainer, self.home, self.saver, self.trackers = trainer, home, saver, trackers
        self.training = trainer.training
        self.total = trainer.training.learner.setting.epochs
        self.evaluate_every = evaluate_every or max(1, self.total // EVALUATIONS)
        self.history: list[dict[str, float]] = []
        self.chief = self.training.learner.ranks.rank == 0

    def run(self) -> None:
        """Run all epochs that are left."""
        listener, training = self.trainer.progress, self.training
        self.history = list(self.saver.resume(listener).get("history", ()))
        if training.steps:
            listener.say(f"going on in epoch {min(training.epoch + 1, self.total)} of {self.total}")
        if self.chief:
            write_text(self.home / METRICS, "".join(to_json(line) + "\n" for line in self.history), force=True)
            if training.steps:
                (self.home / SPEED).touch()  # a power cut may have taken it, and a checkpoint not
        with listener.task("training", total=training.length - training.place) as advance:
            while not training.over:
                self._run_one(advance)
        self._save(now=True)

    def _run_one(self, advance: Advance) -> None:
        begin = time.perf_counter()
        seen = 0

        def after_step(count: int, share: float) -> None:
            nonlocal seen
            seen += count
            advance(share)
            self._save()

        numbers = self.training.run_epoch(after_step)
        speed = {"seconds": time.perf_counter() - begin, "images_per_second": seen / (time.perf_counter() - begin)}
        numbers |= self._evaluate()
        self.history.append(numbers)
        if self.chief:
            epoch = int(numbers["epoch"])
            _append_line(self.home / METRICS, numbers)
            _append_line(self.home / SPEED, {"epoch": epoch, **speed})
            self.trackers.log({**numbers, "images_per_second": speed["images_per_second"]}, epoch)
            self.trainer.progress.status(_in_words(numbers, self.total, speed["images_per_second"]))
        self._save()

    def _evaluate(self) -> dict[str, float]:
        """Measure accuracy on the test split, if it is time and there is one."""
        test = self.trainer.dataset.test
        if test is None or not (self.training.over or self.training.epoch % self.evaluate_every == 0):
            return {}
        found = accuracy(self.trainer.predict(test), test.labels if test.clean_labels is None else test.clean_labels)
        return {} if found is None else {"test_accuracy": found}

    def _save(self, *, now: bool = False) -> None:
        self.saver.save({"history": self.history}, now=now)


def _in_words(numbers: Mapping[str, float], epochs: int, rate: float) -> str:
    words = [f"epoch {int(numbers['epoch']) + 1}/{epochs}", f"loss {numbers['loss']:.3f}"]
    if "train_accuracy" in numbers:
        words.append(f"agrees with {numbers['train_accuracy']:.1%} of given labels")
    if "test_accuracy" in numbers:
        words.append(f"test accuracy {numbers['test_accuracy']:.2%}")
    return ", ".join([*words, *([f"{rate:,.0f} examples/s"] if rate else [])])


def _append_line(path: Path, line: Mapping[str, float]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(to_json(line) + "\n")
