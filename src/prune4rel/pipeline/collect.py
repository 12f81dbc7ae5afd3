"""From a run folder to what it is known to be, the story its report tells, and a table."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel._version import __version__
from prune4rel.atomic import csv_text, put_aside
from prune4rel.data import Dataset
from prune4rel.data.files import told_outside
from prune4rel.engines.local import LocalEngine
from prune4rel.errors import InputError, in_a_line
from prune4rel.machine import resolve_device
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.methods.ranking import confidence_of
from prune4rel.neighbours.build import TARGET_DEGREE
from prune4rel.pipeline.config import Config, read_yaml
from prune4rel.progress import Progress
from prune4rel.provenance import versions
from prune4rel.reading import read_json, read_record
from prune4rel.report import Cell, Story, map_kind, map_of
from prune4rel.report.pictures import thumbnails_of
from prune4rel.selection import Selection
from prune4rel.signals import Signals
from prune4rel.steps import KINDS, SelectStep, Steps, TrainStep
from prune4rel.steps.data import identify, identify_truth, open_dataset, open_examples
from prune4rel.steps.embed import PLACE
from prune4rel.steps.select import EVERYTHING, OwnMethod
from prune4rel.storage import read_columns, to_json, write_text
from prune4rel.training.result import CORRECTED, Result

FORMAT = 1
CONFIG, MANIFEST = "config.yaml", "manifest.json"


def now() -> str:
    """Return the time, for people and programs."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class _Facts:
    """What is read of a manifest."""

    format: int
    versions: Mapping[str, str]
    begun: str = ""
    device: str = ""
    own: Mapping[str, OwnMethod] = field(default_factory=dict)
    state: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    truth: Mapping[str, str] = field(default_factory=dict)


def read_manifest(home: Path) -> dict[str, Any] | None:
    """Return the manifest of a run folder, or None where there is none; refuse one of another format."""
    path = home / MANIFEST
    if not path.exists():
        return None
    manifest: dict[str, Any] = read_json(path, "manifest of a run")
    facts = read_record(_Facts, manifest, path)
    if facts.format != FORMAT:
        made_by = facts.versions.get("prune4rel", "another version")
        raise InputError(
            f"{home}: was written by version {in_a_line(made_by)} of prune4rel, whose folders look different (format "
            f"{facts.format}, here {FORMAT}); use that version, or choose another folder"
        )
    return manifest


def own_methods(home: Path, manifest: dict[str, Any]) -> dict[str, OwnMethod]:
    """Return what a run folder says of methods in code of the user's own, by their names."""
    return dict(read_record(_Facts, manifest, home / MANIFEST).own)


def open_manifest(home: Path, *, restart: bool, progress: Progress) -> dict[str, Any]:
    """Read what is known of a folder to work in, or begin; refuse a folder that holds something else."""
    found = read_manifest(home)
    if found is None:
        strangers = sorted(each.name for each in home.iterdir() if not each.name.startswith("."))
        if strangers:
            raise InputError(f"{home}: holds {strangers[0]!r} but no run; choose an empty or a new folder")
    if found is None or restart:
        for place in (PLACE, *(kind.place for kind in KINDS)):
            put_aside(home / place)
        return {"format": FORMAT, "versions": versions(), "begun": now()}
    before = found["versions"]["prune4rel"]
    if before != __version__:
        progress.say(f"{home}: begun by version {before} of prune4rel, going on with {__version__}")
    return {**found, "versions": versions()}


def write_manifest(home: Path, manifest: dict[str, Any]) -> None:
    """Write it."""
    plain = json.loads(to_json(manifest))
    text = json.dumps(plain, indent=1) + "\n"  # in ASCII: a path may hold bytes that are no text
    write_text(home / MANIFEST, text, force=True)


ROWS_AT_ONCE = 4096

AS_BEFORE = {"signals_from": "warmup"}
"""What runs did before there was an option for it."""


@dataclass(frozen=True)
class Findings:
    """What a run came to: the story of its report, and all trainings on everything, of which a story holds one."""

    story: Story
    everything: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All trainings."""
        return (*self.story.cells, *self.everything)


def collect(folder: str | Path, progress: Progress | None = None, *, code: Collection[str] = ()) -> Story:
    """Read everything a report needs from the folder of a run; trainings that are not finished are left out.

    Parameters
    ----------
    folder
        What `prune4rel run` wrote. The data set has to be where it was.
    progress
        Told how drawing the map comes along.
    code
        Names of methods in code of the user's own that may be run; none is needed where the folder describes them.
    """
    return gather(folder, progress, code=code).story


def gather(folder: str | Path, progress: Progress | None = None, *, code: Collection[str] = ()) -> Findings:
    """Read all results of a run; see `collect`."""
    home = Path(folder)
    manifest = read_manifest(home)
    if manifest is None or not (home / CONFIG).is_file():
        raise InputError(f"{home}: holds no run; it has no {MANIFEST if manifest is None else CONFIG}")
    told = read_yaml(home / CONFIG)
    if not isinstance(told, Mapping):
        raise InputError(f"{home / CONFIG}: is not the configuration that was written there; run it again")
    said = {**AS_BEFORE, **told}
    config = Config.from_dict(said, f"{home / CONFIG}: ", code=code, own=own_methods(home, manifest))
    config = config.changed(home=str(home.absolute()))
    dataset = open_dataset(config)
    if config.data is not None and (outside := told_outside(open_examples(config).train.files or (), config.data)):
        (progress or Progress()).say(outside)
    inputs, changed = _inputs(dataset, home, manifest)
    steps = Steps(config, dataset, home, KINDS, inputs)
    for step in steps:
        if (trouble := step.damage(thorough=True)) is not None:
            raise InputError(f"{trouble}; `prune4rel run --verify` on {home} does {step.name} again")
    finished = [each for each in steps.of(TrainStep) if each.done and not each.on_the_way]
    alone = _alone(steps) if config.select_only else []
    if not finished and not alone:
        raise InputError(f"{home}: no training is finished there; run `prune4rel run` on it again")
    cells = {id(each): _trained(each, dataset) for each in finished}
    everything = tuple(cells[id(each)] for each in finished if each.choice is None)
    shown = _spotlight(finished, cells)
    whole = sorted(everything, key=lambda cell: shown is None or cell.learner != shown.learner)
    train = dataset.train
    environment = {**manifest["versions"], "begun": manifest.get("begun", ""), "device": manifest.get("device", "")}
    story = Story(
        title=config.title or f"{dataset.name}: what pruning kept, and what it corrected",
        dataset=dataset.name,
        n=len(train),
        class_names=dataset.class_names,
        labels=train.labels,
        clean_labels=train.clean_labels,
        class_counts=tuple(np.bincount(train.labels, minlength=dataset.n_classes).tolist()),
        cells=(*alone, *(cells[id(each)] for each in finished if each.choice is not None)),
        spotlight=None if shown is None else cells[id(shown)],
        thumbnails=thumbnails_of(config.seen(open_examples(config)).train),
        ids=train.ids,
        full_training=whole[0] if whole else None,
        everything=everything,
        steps=config.steps,
        environment=environment,
        configuration=config.as_yaml(),
        notes=(*changed, *_notes(steps)),
        **({} if shown is None else _spotlit(shown, progress or Progress())),
    )
    return Findings(story, everything)


def _inputs(
    dataset: Dataset, home: Path, manifest: Mapping[str, Any]
) -> tuple[tuple[dict[str, str], dict[str, str]], tuple[str, ...]]:
    """Return fingerprints of the data a run was made with, and a note where examples are others by now."""
    now = identify(dataset, home), identify_truth(dataset, home)
    known = read_record(_Facts, manifest, home / MANIFEST)
    then = dict(known.inputs), dict(known.truth)
    if then == now or known.state != "finished" or "truth" not in manifest:
        return now, ()
    for name in ("labels", "clean_labels", "test_labels"):
        if any(one.get(name) != other.get(name) for one, other in zip(then, now, strict=True)):
            raise InputError(f"{home}: {name.replace('_', ' ')} of {dataset.name} changed since; run it again")
    return then, ("Examples changed or went away since this run: pictures may be others than those it was made with.",)


def _picked(choice: SelectStep | None, learner: str, seed: int, dataset: Dataset) -> Cell:
    """Return what is known of picks, or of everything, before anything is trained on them."""
    train = dataset.train
    chosen = None if choice is None else Selection.load(choice.path)
    indices = np.arange(len(train)) if chosen is None else chosen.indices
    wrong = None if train.clean_labels is None else (train.labels != train.clean_labels)[indices]
    picking = 0.0 if choice is None else float((choice.record() or {}).get("picking_seconds", 0.0))
    return Cell(
        method=EVERYTHING if choice is None else choice.spec.method,
        label=EVERYTHING if choice is None else choice.spec.label,
        learner=learner,
        ratio=1.0 if choice is None else choice.ratio,
        seed=seed,
        size=len(indices),
        indices=indices,
        class_counts=tuple(np.bincount(train.labels[indices], minlength=dataset.n_classes).tolist()),
        subset_noise=None if wrong is None else float(wrong.mean()),
        gains=None if chosen is None else chosen.gains,
        objective=None if chosen is None or not np.isfinite(chosen.objective) else chosen.objective,
        seconds={"selection": picking},
    )


def _trained(training: TrainStep, dataset: Dataset) -> Cell:
    result = Result.load(training.folder)
    return replace(
        _picked(training.choice, training.learner, training.seed, dataset),
        size=result.size,
        test_accuracy=result.test_accuracy,
        best_accuracy=result.best_accuracy,
        relabel_accuracy=result.relabel_accuracy,
        self_correct=result.self_correction,
        subset_noise=result.subset_noise,
        curve=result.history,
        seconds=training.seconds_by_step(),
        labels_changed=result.labels_changed,
        wrong_label_ap=result.wrong_label_ap,
        steps=None if result.steps is None else training.paid + result.steps,
        paid=training.paid,
    )


def _alone(steps: Steps) -> list[Cell]:
    """Return the selections of a run that trains nothing, once for every learner they are for."""
    cells = []
    for seed in steps.seeds:
        for each in steps.options.contenders:
            if each.spec is not None:
                choice = SelectStep.of(steps, each.spec, each.ratio, each.learner, seed)
                cells += [_picked(choice, each.learner, seed, steps.dataset)] if choice.done else []
    return cells


def _spotlight(finished: list[TrainStep], cells: dict[int, Cell]) -> TrainStep | None:
    """Return the training whose picks and corrections are shown: of the best label and learner, the first seed."""
    pruned = [each for each in finished if each.choice is not None]
    if not pruned:
        return None

    def worth(each: TrainStep) -> tuple[float, float]:
        same = [
            cells[id(other)].test_accuracy or 0.0
            for other in pruned
            if (other.label, other.learner, other.ratio) == (each.label, each.learner, each.ratio)
        ]
        return float(np.mean(same)), -each.seed

    return max(pruned, key=worth)


def _spotlit(shown: TrainStep, progress: Progress) -> dict[str, Any]:
    """Gather what is shown of one training: the map, its corrections, the confidence its picks lend."""
    if shown.choice is None:
        raise AssertionError("only pruned trainings are shown")
    signals = Signals.load(shown.choice.provider.signals)
    chosen = Selection.load(shown.choice.path)
    table, _ = read_columns(shown.folder / CORRECTED, ["corrected_label", "confidence"])
    found: dict[str, Any] = {
        "corrected": table["corrected_label"],
        "confidence": table["confidence"],
    }
    if signals.embeddings is not None:
        progress.say("drawing the map")
        found["map_xy"] = map_of(signals.embeddings, 0)
        found["map_kind"] = map_kind(len(signals))
        found["neighbourhood"] = lent_confidence(signals, chosen)
    return found


def lent_confidence(signals: Signals, chosen: Selection) -> NDArray[np.float64]:
    """Return N(x; S) for every example: the sum of similarity times confidence over its picked neighbours.

    Neighbours and confidences are those of the selection's own options where it has any, else those of the preset
    ``"coverage"``. A pick lends its confidence to itself, too.
    """
    names = ("tau", "similarity", "confidence", "strict")
    own = {name: chosen.options[name] for name in names if chosen.options.get(name) is not None}
    options = own if len(own) == len(names) else {name: PRESETS["coverage"][name] for name in names}
    device = resolve_device("auto", work=signals.embeddings.size * len(chosen) if signals.embeddings is not None else 0)
    confidence = confidence_of(signals, options.pop("confidence"))
    near = LocalEngine(signals).neighbourhood(
        **options, target_degree=TARGET_DEGREE, allow_zero=True, device=device, progress=Progress()
    )
    lent = np.zeros(len(signals))
    lent[chosen.indices] += confidence[chosen.indices]
    for start in range(0, len(chosen.indices), ROWS_AT_ONCE):
        rows = chosen.indices[start : start + ROWS_AT_ONCE]
        edges = near.backend.of(rows, near.threshold, max_edges=np.inf)
        np.add.at(lent, edges.j, edges.weight * confidence[rows[edges.i]])
    return lent


def _notes(steps: Steps) -> tuple[str, ...]:
    notes = []
    if missing := sum(not training.done for training in steps.of(TrainStep)):
        notes.append(f"{missing} of {len(steps.of(TrainStep))} trainings are not finished and not shown.")
    records = [(step, record) for step in steps if (record := step.record()) is not None]
    if resumed := [step.name for step, record in records if record.get("resumed")]:
        more = f" and {len(resumed) - 1} more" if len(resumed) > 1 else ""
        notes.append(f"{resumed[0]}{more}: interrupted and taken up again; the time before that is not counted.")
    for step, record in records:
        notes += [f"{step.name}: {note}" for note in record.get("notes", [])]
    return tuple(dict.fromkeys(notes))


RESULTS = "results.csv"
COLUMNS = (
    "method",
    "learner",
    "ratio",
    "seed",
    "size",
    "test_accuracy",
    "best_accuracy",
    "relabel_accuracy",
    "self_correct",
    "subset_noise",
    "labels_changed",
    "wrong_label_ap",
    "steps",
    "objective",
    "warmup_seconds",
    "selection_seconds",
    "training_seconds",
)
TIMES = ("warmup", "selection", "training")


def seconds_of_everything(cells: Sequence[Cell], learner: str, n: int) -> tuple[float, bool] | None:
    """Return the seconds a training on all n examples takes, and whether that was measured or is scaled up.

    >>> import numpy as np
    >>> cell = {"method": "uniform", "label": "uniform", "learner": "sop", "ratio": 0.5, "seed": 0, "size": 50}
    >>> seconds_of_everything([Cell(**cell, indices=np.arange(50), seconds={"training": 3.0})], "sop", 100)
    (6.0, False)
    """
    same = [cell for cell in cells if cell.learner == learner and cell.seconds.get("training")]
    whole = [cell.seconds["training"] for cell in same if cell.label == EVERYTHING]
    if whole:
        return fmean(whole), True
    return (fmean(cell.seconds["training"] * n / cell.size for cell in same), False) if same else None


def write_results(cells: Sequence[Cell], path: Path) -> None:
    """Write one line a training as CSV; what is not known is empty."""
    rows = []
    for cell in cells:
        known = [cell.label, cell.learner, cell.ratio, cell.seed, cell.size]
        known += [getattr(cell, name) for name in COLUMNS[len(known) : -len(TIMES)]]
        rows.append([*known, *(cell.seconds.get(name) for name in TIMES)])
    text = csv_text(COLUMNS, rows)
    write_text(path, text, force=True)
