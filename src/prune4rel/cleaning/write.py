"""`Cleaned` as a folder: tables, signals, neighbours, copies, where the examples lie, and a page to read."""

import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.cleaning.cleaned import Cleaned
from prune4rel.contents import as_plain, contents_of
from prune4rel.data import Dataset, Split
from prune4rel.data.source import CLEANED
from prune4rel.errors import InputError
from prune4rel.judging.similar import Similar
from prune4rel.machine import format_seconds
from prune4rel.provenance import versions
from prune4rel.reading import seal
from prune4rel.storage import (
    check_writable,
    to_table,
    write_arrays,
    write_json,
    write_parquet,
    write_whole,
)

if TYPE_CHECKING:
    from prune4rel.report.clean_page import LabelStory

OWN = (
    "labels.parquet",
    "labels.csv",
    "labels.json",
    "noise.json",
    "signals",
    "neighbours.npz",
    "duplicates.parquet",
    "unlike.parquet",
    "annotators.parquet",
    "source.json",
    "report.html",
)
"""What `write_folder` writes; whatever else lies in a folder that is replaced stays there."""

FOR_PEOPLE = ("labels.csv", "report.html")
"""What nothing here reads again, so that it may be changed."""

MOST_CONTRADICTING_FIRST = 200


@dataclass(frozen=True, eq=False)
class Origin:
    """Where examples come from, so that they can be shown now, and opened again later.

    Parameters
    ----------
    dataset, data, options
        What ``load_dataset(dataset, data, **options)`` takes; no dataset where there are only arrays.
    opened
        The data set itself, for pictures, texts and true labels.
    files
        Paths of single arrays.
    """

    dataset: str | None = None
    data: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    opened: Dataset | None = None
    files: dict[str, str] = field(default_factory=dict)


def check_folder(path: Path, *, force: bool) -> None:
    """Fail now, before the work, if a folder could not be written later, or is none that may be replaced."""
    check_writable(path, force=force)
    if path.exists() and not (path / CLEANED).is_file():
        raise InputError(f"{path}: is not a folder that clean has written, so it is not replaced; choose another name")


def write_folder(found: Cleaned, path: Path, *, source: Origin | None = None, force: bool = False) -> None:
    """Write everything, whole or not at all. Decisions and other files in a folder that is replaced stay there."""
    check_folder(path, force=force)
    origin = source or Origin()

    def write(part: Path) -> None:
        part.mkdir()
        found.labels.save(part / "labels.parquet")
        found.labels.save(part / "labels.csv")
        found.signals.save(part / "signals")
        if found.similar is not None:
            write_arrays(
                part / "neighbours.npz",
                {"indices": found.similar.indices, "similarities": found.similar.similarities},
            )
        if found.duplicates is not None:
            write_parquet(found.duplicates.to_table(), part / "duplicates.parquet")
            write_parquet(to_table({"index": found.unlike}), part / "unlike.parquet")
        if found.consensus is not None:
            write_parquet(to_table(annotators_of(found)), part / "annotators.parquet")
        told = {"dataset": origin.dataset, "data": origin.data, "options": origin.options, "files": origin.files}
        write_json(part / "source.json", seal(told))
        from prune4rel.report.clean_page import render_labels  # noqa: PLC0415 - only for folders

        (part / "report.html").write_text(render_labels(story_of(found, origin, path)), encoding="utf-8")
        contents = contents_of(part, without=FOR_PEOPLE)
        if path.is_dir():
            _keep(path, part)
        write_json(part / CLEANED, seal({**noise_of(found), "contents": as_plain(contents)}))

    write_whole(path, write, force=force)


def _keep(old: Path, new: Path) -> None:
    """Take over what others put into a folder, such as decisions that may be growing just now."""
    for each in old.iterdir():
        if each.name in OWN:
            continue
        if each.is_dir():
            shutil.copytree(each, new / each.name, symlinks=True)
        else:
            try:
                os.link(each, new / each.name)
            except OSError:
                shutil.copy2(each, new / each.name)


def annotators_of(found: Cleaned) -> dict[str, NDArray[Any]]:
    """Return who voted, how often, and how often rightly by estimate; the best first."""
    if found.consensus is None:
        return {}
    order = np.argsort(-found.consensus.quality, kind="stable")
    return {
        "annotator": np.array(found.annotators)[order],
        "votes": found.consensus.cast[order],
        "quality": found.consensus.quality[order],
    }


def noise_of(found: Cleaned) -> dict[str, Any]:
    """Return what is estimated of all labels together, as it is saved in ``noise.json``."""
    judged, labels = found.judgement, found.labels
    return {
        "n": len(labels),
        "class_names": list(labels.class_names),
        "noise_rate": labels.noise_rate,
        "noise_rate_interval": labels.about["noise_rate_interval"],
        "noise_matrix": judged.noise_matrix.tolist(),
        "noise_matrix_error": judged.noise_matrix_error.tolist(),
        "issues": int(labels.is_label_issue.sum()),
        "worst_pairs": [{"given": a, "predicted": b, "labels": times} for a, b, times in found.worst_pairs[:100]],
        "groups_of_copies": 0 if found.duplicates is None else len(found.duplicates),
        "contradicting_groups": 0 if found.duplicates is None else _contradicting(found),
        "training_examples_in_test": 0 if found.duplicates is None else len(found.duplicates.in_test),
        "unlike_all_others": len(found.unlike),
        "neighbours_exact": None if found.similar is None else found.similar.exact,
        "neighbours_found": None if found.similar is None else found.similar.found,
        "consensus": None if found.consensus is None else found.consensus.way,
        "notes": list(found.notes),
        "options": dict(judged.options),
        "seconds": found.seconds,
        "provenance": {"versions": versions()},
    }


def _contradicting(found: Cleaned) -> int:
    copies = found.duplicates
    return 0 if copies is None else len(np.unique(copies.group[copies.contradicting]))


def story_of(found: Cleaned, origin: Origin, path: Path) -> "LabelStory":
    """Return what the page tells."""
    from prune4rel.report.clean_page import LabelStory  # noqa: PLC0415 - an extra
    from prune4rel.report.pictures import thumbnails_of  # noqa: PLC0415 - an extra

    opened = origin.opened
    train, test = (None, None) if opened is None else (opened.train, opened.test)
    interval = found.labels.about["noise_rate_interval"]
    name = (Path(origin.data).name if origin.data else "") or origin.dataset

    def pictures(split: Split | None) -> Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None:
        return None if split is None else thumbnails_of(split)

    return LabelStory(
        title=f"Labels of {name}" if name else "Labels",
        labels=found.labels,
        interval=None if None in interval else (interval[0], interval[1]),
        matrix_error=found.judgement.noise_matrix_error,
        clean_labels=None if train is None else train.clean_labels,
        groups=_groups(found),
        n_groups=0 if found.duplicates is None else len(found.duplicates),
        in_test=0 if found.duplicates is None else len(found.duplicates.in_test),
        unlike=found.unlike,
        annotators=_voters(found),
        thumbnails=pictures(train),
        texts=None if train is None else train.texts,
        test_thumbnails=pictures(test),
        test_texts=None if test is None else test.texts,
        commands=next_commands(path),
        facts={
            "judged": "out of sample, from " + ("embeddings" if found.similar is not None else "probabilities"),
            "neighbours": "" if found.similar is None else _how_many(found.similar),
            "time": format_seconds(sum(found.seconds.values())),
            **{name: str(value) for name, value in versions().items() if value != "absent"},
        },
        notes=found.notes,
    )


def _groups(found: Cleaned) -> list[tuple[list[int], list[int], str, bool]]:
    """Return groups of copies, those that contradict each other first."""
    copies = found.duplicates
    if copies is None or not len(copies):
        return []
    first = np.flatnonzero(np.r_[True, np.diff(copies.group) != 0])
    ends = np.r_[first[1:], len(copies.group)]
    order = np.argsort(~copies.contradicting[first], kind="stable")[:MOST_CONTRADICTING_FIRST]
    told = []
    for start, end in zip(first[order], ends[order], strict=True):
        index, train = copies.index[start:end], copies.split[start:end] == "train"
        told.append(
            (index[train].tolist(), index[~train].tolist(), str(copies.kind[start]), bool(copies.contradicting[start]))
        )
    return told


def _how_many(similar: Similar) -> str:
    return "exact" if similar.exact else f"approximate: about {similar.found:.1%} of the nearest were found"


def _voters(found: Cleaned) -> list[tuple[str, int, float]]:
    columns = annotators_of(found)
    return [] if not columns else [(str(a), int(v), float(q)) for a, v, q in zip(*columns.values(), strict=True)]


def next_commands(path: Path) -> list[tuple[str, str]]:
    """Return what to do with a folder, and the commands that do it."""
    home = shlex.quote(str(path))
    return [
        ("Look at the suspicious labels and decide:", f"prune4rel review {home}"),
        ("Choose a fifth to train on:", f"prune4rel select {home} --ratio 0.2 --balanced -o subset.parquet"),
        (
            "Compare methods on a fifth held out, and train:",
            f"prune4rel run {home} --methods uniform,small-loss,prune4rel --option test_share=0.2 -o run",
        ),
    ]
