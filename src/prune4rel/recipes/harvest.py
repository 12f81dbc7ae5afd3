"""What has been run so far, read from the folders of the pipeline; and kept as small files.

Those are to be shown to others, and counted in wherever the rest is run. A file holds one repeat of one cell: its
numbers, how the training went, and the picks. Weights, signals and corrected labels stay where they are.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from prune4rel.atomic import make_folder
from prune4rel.data import Dataset
from prune4rel.errors import InputError
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.pipeline.collect import lent_confidence
from prune4rel.provenance import versions
from prune4rel.reading import AnyFloat, read_json, read_record, reading
from prune4rel.recipes.cells import (
    ACCURACY,
    CORRECTED,
    FOUND,
    IN_ALL,
    NOISE,
    RIGHT,
    SECONDS,
    SOURCES,
    STEPS,
    PaperCell,
)
from prune4rel.recipes.jobs import Job
from prune4rel.selection import Selection
from prune4rel.signals import Signals
from prune4rel.steps import KINDS, SelectStep, Step, Steps, TrainStep
from prune4rel.steps.data import open_dataset
from prune4rel.steps.step import slug, written
from prune4rel.storage import read_columns, to_json, write_text
from prune4rel.training.result import CORRECTED as LABELS
from prune4rel.training.result import Result

Made = TypeVar("Made", SelectStep, TrainStep)


@dataclass(frozen=True)
class Finding:
    """The numbers of one finished repeat of a cell, on one of its label sets."""

    cell: PaperCell
    labels: str
    seed: int
    numbers: dict[str, float]


def harvest(jobs: Iterable[Job], out: Path) -> list[Finding]:
    """Return what is finished; what is not is left out."""
    return [finding for job in jobs for finding, _ in finished(job, out / job.folder)]


def finished(job: Job, folder: Path, only: Step | None = None) -> Iterator[tuple[Finding, SelectStep | TrainStep]]:
    """Give what is finished of a job, each with what it comes from; of one step if told so."""
    if not folder.is_dir():
        return
    dataset = open_dataset(job.config)
    steps = Steps(job.config, dataset, folder, KINDS)
    cells = job.cell_of()
    if job.config.select_only:
        for choice in _some(steps.of(SelectStep), only):
            for learner in learners_of(job, choice) if choice.done else ():
                cell = cells.get((choice.spec.label, learner, choice.ratio))
                if cell is not None:
                    yield Finding(cell, job.labels, choice.seed, _of_choice(choice, dataset)), choice
        return
    for training in _some(steps.of(TrainStep), only):
        later = "" if training.round == 1 else f", round {training.round}"
        cell = cells.get((training.label.removesuffix(later), training.learner, training.ratio))
        if cell is not None and training.done and not training.on_the_way:
            cell = replace(cell, method=f"{cell.method}{later}")
            yield Finding(cell, job.labels, training.seed, _of_training(training)), training


def _some(made: list[Made], only: Step | None) -> list[Made]:
    return [one for one in made if only is None or one.folder == only.folder]


def learners_of(job: Job, choice: SelectStep) -> tuple[str, ...]:
    """Return the learners a selection is for: all that share its warm-up."""
    own = (choice.provider.learner,) if job.config.warmup_learner is None else job.config.learners
    return tuple(learner for learner in own if learner in (choice.spec.learners or own))


def _of_choice(choice: SelectStep, dataset: Dataset) -> dict[str, float]:
    train = dataset.train
    seconds = float((choice.record() or {}).get("picking_seconds", np.nan))
    found = {SECONDS: seconds}
    if train.clean_labels is not None:
        picks = Selection.load(choice.path).indices
        found[NOISE] = 100 * float((train.labels[picks] != train.clean_labels[picks]).mean())
    return found


def _of_training(training: TrainStep) -> dict[str, float]:
    result = Result.load(training.folder)
    shares = {
        ACCURACY: result.test_accuracy,
        NOISE: result.subset_noise,
        CORRECTED: result.self_correction,
        RIGHT: result.relabel_accuracy,
    }
    found = {name: 100 * value for name, value in shares.items() if value is not None and np.isfinite(value)}
    if result.wrong_label_ap is not None:
        found[FOUND] = result.wrong_label_ap
    if result.steps is not None:
        found[STEPS] = training.paid + result.steps
    return found | {IN_ALL: sum(training.seconds_by_step().values())}


@dataclass(frozen=True)
class Relabeling:
    """How sure the picks around each example are, and whether its label ended up right; one finished training."""

    dataset: str
    noise: str
    confidence: NDArray[np.float64]
    right: NDArray[np.bool_]


def relabelings(jobs: Iterable[Job], out: Path) -> list[Relabeling]:
    """Return neighbourhood confidence and re-labeling of every example, for every finished training."""
    return [look for job in jobs for look in _relabelings(job, out / job.folder)]


def _relabelings(job: Job, folder: Path) -> Iterator[Relabeling]:
    if not folder.is_dir():
        return
    dataset = open_dataset(job.config)
    clean = dataset.train.clean_labels
    if clean is None:
        return
    for training in Steps(job.config, dataset, folder, KINDS).of(TrainStep):
        if training.choice is None or not training.done:
            continue
        near = {**PRESETS["official"], "tau": SOURCES[job.dataset].tau}
        chosen = replace(Selection.load(training.choice.path), options=near)
        said = read_columns(training.folder / LABELS, ["corrected_label"])[0]["corrected_label"]
        signals = Signals.load(training.choice.provider.signals)
        yield Relabeling(job.dataset, job.noise, lent_confidence(signals, chosen), said == clean)


FORMAT = 1
MOST_EXAMPLES = 2**31
DIGITS = 4
CURVES = ("loss", "train_accuracy", "test_accuracy")
"""Of every epoch, as far as they are known."""

SELECTION = "selection"
"""What a file is called after where nothing was trained."""


def keep(jobs: Iterable[Job], out: Path, archive: Path, only: Step | None = None) -> list[Finding]:
    """Write a file for all that is finished in the folders of some jobs, or for one step of them; return it."""
    found = []
    for job in jobs:
        for finding, made in finished(job, out / job.folder, only):
            place = archive / job.kept_in / _name(finding, made)
            make_folder(place.parent)
            write_text(place, to_json(_entry(finding, made)) + "\n", force=True)
            found.append(finding)
    return found


def kept(archive: Path, within: str = "*") -> list[Finding]:
    """Read all files of an archive, or of a folder within it.

    Trainings come before selections, so that where a cell has both, its numbers are the training's.
    """
    trained_first = sorted(entries(archive, within), key=lambda entry: "training" not in entry)
    return together((), map(_finding, trained_first))


def entries(archive: Path, within: str = "*") -> list[dict[str, Any]]:
    """Read all files of an archive as they are, or of a folder within it."""
    check_archive(archive)
    return [read_entry(path) for path in sorted(archive.glob(f"{within}/*.json"))]


def check_archive(archive: Path) -> None:
    """Refuse a folder that is not there."""
    if not archive.is_dir():
        raise InputError(f"{archive}: there is no such folder; an archive is made by running a recipe with it")


def together(here: Iterable[Finding], elsewhere: Iterable[Finding]) -> list[Finding]:
    """Return findings of two sources, each once; of two numbers of the same, that which was found here.

    >>> cell = PaperCell("cifar10n", "worst", "sop+", "Uniform", 0.2)
    >>> some = together([Finding(cell, "worst", 0, {"test_acc": 80.0})], [Finding(cell, "worst", 0, {"test_acc": 7.0})])
    >>> [one.numbers for one in some]
    [{'test_acc': 80.0}]
    """
    found: dict[tuple[PaperCell, str, int], Finding] = {}
    for one in (*here, *elsewhere):
        key = one.cell, one.labels, one.seed
        known = found[key].numbers if key in found else {}
        found[key] = replace(one, numbers={**one.numbers, **known})
    return list(found.values())


def picks_of(path: Path) -> NDArray[np.int64]:
    """Return the picks that a file holds, in ascending order."""
    entry = read_entry(path)
    with reading(path, "file of an archive of results"):
        n = entry["n"]
        if type(n) is not int or not 0 <= n <= MOST_EXAMPLES:
            raise ValueError(f"n is {n!r}")
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(base64.b64decode(entry["picks"], validate=True), max_length=(n + 7) // 8 + 1)
        if len(packed) != (n + 7) // 8 or not unpacker.eof:
            raise ValueError(f"its picks are not those of {n} examples")
        return np.flatnonzero(np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=n))
    raise AssertionError


def _name(finding: Finding, made: SelectStep | TrainStep) -> str:
    learner = slug(finding.cell.learner) if isinstance(made, TrainStep) else SELECTION
    return f"{slug(finding.cell.method)}-{written(finding.cell.ratio)}-{learner}-seed{finding.seed}.json"


def _entry(finding: Finding, made: SelectStep | TrainStep) -> dict[str, Any]:
    cell = finding.cell
    choice = made.choice if isinstance(made, TrainStep) else made
    return {
        "format": FORMAT,
        "dataset": cell.dataset,
        "noise": cell.noise,
        "labels": finding.labels,
        "learner": cell.learner,
        "method": cell.method,
        "ratio": cell.ratio,
        "seed": finding.seed,
        "numbers": finding.numbers,
        **({"training": _training_entry(made)} if isinstance(made, TrainStep) else {}),
        **({} if choice is None else _picking_entry(choice)),
    }


def _picking_entry(choice: SelectStep) -> dict[str, Any]:
    chosen = Selection.load(choice.path)
    chosen_bits = np.zeros(chosen.n, dtype=bool)
    chosen_bits[chosen.indices] = True
    packed = zlib.compress(np.packbits(chosen_bits).tobytes(), 9)
    return {
        "warm_up": {name: value for name, value in choice.provider.depends.items() if name != "data"},
        "selection": {"options": chosen.options, "stats": chosen.stats, "provenance": chosen.provenance},
        "n": chosen.n,
        "picks": base64.b64encode(packed).decode(),
    }


def _training_entry(training: TrainStep) -> dict[str, Any]:
    result = Result.load(training.folder)
    plan = training.depends["plan"]
    return {
        "plan": plan,
        "epochs": result.epochs,
        "size": result.size,
        "best_accuracy": result.best_accuracy,
        "relabel_accuracy": result.relabel_accuracy,
        "labels_changed": result.labels_changed,
        "commit": (training.record() or {}).get("commit"),
        "versions": versions(),
        "seconds": result.seconds,
        "curves": {name: _curve(result.history, name) for name in CURVES},
    }


def _curve(history: Iterable[Mapping[str, float]], name: str) -> list[float | None]:
    return [round(epoch[name], DIGITS) if name in epoch else None for epoch in history]


def read_entry(path: Path) -> dict[str, Any]:
    """Read one file of an archive as it is."""
    entry: dict[str, Any] = read_json(path, "file of an archive of results")
    _finding(entry, path)
    if entry.get("format") != FORMAT:
        raise InputError(f"{path}: has format {entry.get('format')!r}, but this version reads {FORMAT}")
    return entry


@dataclass(frozen=True)
class _Entry:
    """What every file of an archive says."""

    dataset: str
    noise: str
    learner: str
    method: str
    ratio: float
    numbers: Mapping[str, AnyFloat]
    labels: str
    seed: int


def _finding(entry: Mapping[str, Any], path: Path = Path()) -> Finding:
    own = read_record(_Entry, entry, path)
    cell = PaperCell(own.dataset, own.noise, own.learner, own.method, own.ratio)
    return Finding(cell, own.labels, own.seed, dict(own.numbers))
