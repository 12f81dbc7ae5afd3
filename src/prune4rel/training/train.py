"""`train`: a noise-robust learner on a subset, from a plan to a model and corrected labels."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.learners.ranks import Ranks
from prune4rel.machine import Clock
from prune4rel.progress import PlainProgress, Progress
from prune4rel.storage import to_json, write_whole
from prune4rel.training.checkpoint import Checkpoints
from prune4rel.training.evaluate import accuracy, self_correction
from prune4rel.training.model import save_model
from prune4rel.training.plan import Plan, identity_of, make_plan, resolve_subset, shape_of
from prune4rel.training.result import CORRECTED, RESULT, Result, corrected_table, write_corrected
from prune4rel.training.track import Trackers
from prune4rel.training.workshop import Workshop, explain_out_of_memory, is_out_of_memory

METRICS, SPEED, CONFIG, STATES = "metrics.jsonl", "speed.jsonl", "training.json", "checkpoints"
LOOKS = 20
"""How often a training looks at the test split, unless told."""


def train(
    dataset: Dataset,
    subset: ArrayLike | None = None,
    *,
    folder: str | Path,
    learner: str = "sop+",
    plan: Plan | None = None,
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
        A plan, or what `make_plan` takes: `learner_options`, `network`, `seed`, `epochs`, `batch`, `lr`, ...
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
    """
    plan = plan or make_plan(dataset, learner, **options)
    rows = resolve_subset(dataset, subset)
    listener = PlainProgress() if progress is True else progress or Progress()
    home = Path(folder)
    identity = identity_of(plan, dataset, rows)
    states = Checkpoints(home / STATES, identity)
    done = _begin(home, states, identity, restart=restart)
    if done is not None:
        listener.say(f"{home}: finished before; nothing to do (begin anew with --restart)")
        return done
    clock = Clock()
    shop = Workshop(dataset, rows, plan, device=device, ranks=ranks, skip_broken=skip_broken, progress=listener)
    clock.lap("loading")
    names = track if shop.training.learner.ranks.rank == 0 else ()
    with shop.threads(), Trackers(names, home, plan.as_dict()) as trackers:
        run = _Run(shop, home, states, listener, trackers, evaluate_every, save_every)
        try:
            run.to_the_end()
        except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise explain_out_of_memory(shop) from None
        clock.lap("training")
        result = _finish(shop, home, run.history, clock)
    states.clear()
    return result


def _begin(home: Path, states: Checkpoints, identity: Mapping[str, Any], *, restart: bool) -> Result | None:
    """Make the folder, or return the result it already holds."""
    if home.exists() and not home.is_dir():
        raise InputError(f"{home}: is a file; a training needs a folder")
    if not home.parent.is_dir():
        raise InputError(f"{home}: the folder {home.parent} does not exist; make it first")
    home.mkdir(exist_ok=True)
    if restart:
        states.clear()
        (home / RESULT).unlink(missing_ok=True)
    if (home / RESULT).exists():
        states.check_same(home / CONFIG)
        return Result.load(home)
    text = to_json(identity, indent=1) + "\n"
    if (home / CONFIG).exists() and not restart:
        states.check_same(home / CONFIG)
    write_whole(home / CONFIG, lambda part: part.write_text(text, encoding="utf-8"), force=True)
    return None


class _Run:
    """The epochs of one training, saved on the way."""

    def __init__(
        self,
        shop: Workshop,
        home: Path,
        states: Checkpoints,
        listener: Progress,
        trackers: Trackers,
        evaluate_every: int | None,
        save_every: float,
    ) -> None:
        self.shop, self.home, self.states, self.listener, self.trackers = shop, home, states, listener, trackers
        self.training = shop.training
        self.epochs = shop.plan.recipe.epochs
        self.look_every = evaluate_every or max(1, self.epochs // LOOKS)
        self.save_every = save_every
        self.history: list[dict[str, float]] = []
        self.chief = self.training.learner.ranks.rank == 0
        self._saved = time.monotonic()

    def to_the_end(self) -> None:
        """Run all epochs that are left."""
        found = self.states.newest(self.listener, self.shop.device)
        if found is not None:
            tensors, facts = found
            self.training.restore(tensors, facts)
            self.history = list(facts["history"])
            self.listener.say(f"going on in epoch {self.training.epoch + 1} of {self.epochs}")
        _write_lines(self.home / METRICS, self.history)
        left = self.epochs - self.training.epoch
        size = len(self.shop.subset)
        with self.listener.task("training", total=left * size) as advance:
            while self.training.epoch < self.epochs:
                self._epoch(size, advance)
        if self.chief:
            self._save()

    def _epoch(self, size: int, advance: Callable[[float], None]) -> None:
        begin = time.perf_counter()
        seen = 0

        def after_step(count: int) -> None:
            nonlocal seen
            seen += count
            if self.chief and time.monotonic() - self._saved >= self.save_every:
                self.training.check_finite()
                self._save()

        numbers = self.training.run_epoch(after_step)
        spent = time.perf_counter() - begin
        last = self.training.epoch == self.epochs
        if self.shop.dataset.test is not None and (last or self.training.epoch % self.look_every == 0):
            test = self.shop.dataset.test
            truth = test.labels if test.clean_labels is None else test.clean_labels
            numbers["test_accuracy"] = accuracy(self.shop.ask(test).logits, truth)
        self.history.append(numbers)
        advance(size)
        if not self.chief:
            return
        _append_line(self.home / METRICS, numbers)
        _append_line(
            self.home / SPEED, {"epoch": numbers["epoch"], "seconds": spent, "images_per_second": seen / spent}
        )
        self.trackers.log({**numbers, "images_per_second": seen / spent}, int(numbers["epoch"]))
        self.listener.status(_in_words(numbers, self.epochs, seen / spent))
        if time.monotonic() - self._saved >= self.save_every:
            self._save()

    def _save(self) -> None:
        tensors, facts = self.training.state()
        number = self.training.steps * 2 + (self.training.step == 0)
        self.states.save(number, tensors, {**facts, "history": self.history})
        self._saved = time.monotonic()


def _in_words(numbers: Mapping[str, float], epochs: int, rate: float) -> str:
    words = [f"epoch {int(numbers['epoch']) + 1}/{epochs}", f"loss {numbers['loss']:.3f}"]
    if "train_accuracy" in numbers:
        words.append(f"agrees with {numbers['train_accuracy']:.1%} of given labels")
    if "test_accuracy" in numbers:
        words.append(f"test accuracy {numbers['test_accuracy']:.2%}")
    return ", ".join([*words, f"{rate:,.0f} examples/s"])


def _finish(shop: Workshop, home: Path, history: list[dict[str, float]], clock: Clock) -> Result:
    """Ask the final model about every training example, write what it leaves behind, and sum up."""
    train_split, plan = shop.dataset.train, shop.plan
    logits = shop.ask(train_split, title="correcting labels").logits
    probabilities = torch.softmax(logits, dim=1).numpy()
    table = corrected_table(probabilities, train_split.labels, shop.dataset.class_names, train_split.ids)
    clean, given = train_split.clean_labels, train_split.labels
    clock.lap("correcting")
    looks = [numbers["test_accuracy"] for numbers in history if "test_accuracy" in numbers]
    result = Result(
        test_accuracy=looks[-1] if looks else None,
        best_accuracy=max(looks) if looks else None,
        relabel_accuracy=None if clean is None else accuracy(logits, clean),
        self_correction=None
        if clean is None
        else self_correction(logits[shop.subset], given[shop.subset], clean[shop.subset]),
        subset_noise=None if clean is None else float((given[shop.subset] != clean[shop.subset]).mean()),
        labels_changed=int(np.asarray(table["changed"]).sum()),
        size=len(shop.subset),
        epochs=plan.recipe.epochs,
        seconds=clock.laps,
        history=tuple(history),
        notes=tuple(shop.notes) + _broken_note(shop),
    )
    if shop.training.learner.ranks.rank == 0:
        card = {
            "network": plan.network,
            "options": dict(plan.network_options),
            "shape": list(shape_of(shop.dataset)),
            "class_names": list(shop.dataset.class_names),
            "mean": _numbers(shop.views["plain"], "mean"),
            "std": _numbers(shop.views["plain"], "std"),
            "learner": plan.learner,
        }
        with shop.training.averaged():
            save_model(home, shop.training.learner.networks, card)
        write_corrected(table, home / CORRECTED)
        result.save(home)
    return result


def _broken_note(shop: Workshop) -> tuple[str, ...]:
    broken = shop.loader.broken
    return (f"{len(broken)} image files could not be read and were left out",) if broken else ()


def _numbers(view: object, name: str) -> list[float]:
    numbers: list[float] = np.asarray(getattr(view, name), dtype=np.float64).tolist()
    return numbers


def _write_lines(path: Path, lines: list[dict[str, float]]) -> None:
    text = "".join(to_json(line) + "\n" for line in lines)
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"), force=True)


def _append_line(path: Path, line: Mapping[str, float]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(to_json(line) + "\n")
