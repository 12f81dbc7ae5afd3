"""The one list of forms a set is written in, and what each of them is given."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel.blocks import spans
from prune4rel.data import Dataset, Split
from prune4rel.decisions import settle_from, settle_labels
from prune4rel.errors import InputError, refuse_unknown
from prune4rel.labels import Labels
from prune4rel.registry import Entries, options_of, summary_of
from prune4rel.review.folder import DECISIONS, ReviewFolder
from prune4rel.storage import check_writable, write_whole

Issues = Literal["correct", "drop", "keep"]
Write = Callable[..., None]

ISSUES: tuple[Issues, ...] = get_args(Issues)
ROWS_AT_ONCE = 1000
FORMS: Entries["Export"] = Entries("form to export to", "prune4rel.exporting")


@dataclass(frozen=True)
class Export:
    """A registered form: what writes it, and what is known of it."""

    name: str
    write: Write
    summary: str
    extra: str

    @property
    def options(self) -> dict[str, Any]:
        """Its own options and their defaults."""
        return options_of(self.write)


@dataclass(frozen=True, eq=False)
class Corrected:
    """A judged set, with what people decided put in.

    Parameters
    ----------
    labels
        The whole table of labels, n rows, decisions merged.
    rows
        (m,) rows that are written: what was removed, and what is dropped, is not among them.
    new_label
        (m,) the label that each is written with.
    folder
        What ``prune4rel clean`` wrote: probabilities, neighbours, copies and the examples themselves are read from it.
    """

    labels: Labels
    rows: NDArray[np.int64]
    new_label: NDArray[np.int64]
    folder: ReviewFolder

    @property
    def dataset(self) -> Dataset | None:
        """The data set the labels belong to, if there is one that can be opened."""
        return self.folder.dataset

    @property
    def train(self) -> Split | None:
        """Examples of all n labels, where they can be opened."""
        return None if self.dataset is None else self.dataset.train

    def need(self, *kinds: str) -> Split:
        """Return the examples, if they are of one of some kinds: images, files, texts, features."""
        if self.train is None:
            raise InputError(f"the examples are needed to write them: {self.folder.trouble}")
        if self.train.kind not in kinds:
            raise InputError(
                f"this form holds {' or '.join(kinds)}, but these examples are {self.train.kind}; choose another one "
                "(--to)",
                "to",
            )
        return self.train

    def parts(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield what to write in blocks: the split, rows in it, and their labels; test labels as they are."""
        for start, stop in spans(len(self.rows), ROWS_AT_ONCE):
            yield "train", self.rows[start:stop], self.new_label[start:stop]
        if self.dataset is not None and self.dataset.test is not None:
            for start, stop in spans(len(self.dataset.test), ROWS_AT_ONCE):
                yield "test", np.arange(start, stop), self.dataset.test.labels[start:stop]


def register_export(name: str, *, extra: str = "") -> Callable[[Write], Write]:
    r"""Add the decorated function to the list of forms.

    The function takes ``(corrected, place, *, own options)``: a `Corrected`, and a path at which it makes a file or a
    folder; what it has written is renamed to the name the user gave when it returns. It changes nothing else. The first
    line of its docstring is the summary.

    Examples
    --------
    >>> @register_export("names")
    ... def write_names(corrected, place):
    ...     '''Names of the right classes, one a line.'''
    ...     place.write_text("\n".join(corrected.labels.class_names[label] for label in corrected.new_label))
    >>> "names" in list_exports()
    True
    >>> _ = FORMS.pop("names")
    """

    def add(write: Write) -> Write:
        FORMS[name] = Export(name, write, summary_of(write, f"export {name!r}"), extra)
        return write

    return add


def list_exports(pattern: str | None = None) -> list[str]:
    """Names of the forms a set can be written in.

    >>> list_exports("*sv")
    ['csv']
    """
    return FORMS.names(pattern)


def get(name: str) -> Export:
    """Look a form up by its name."""
    return FORMS.look_up(name)


def open_corrected(
    folder: str | Path, *, decisions: str | Path | None = None, issues: Issues = "correct"
) -> tuple[Corrected, list[str]]:
    """Open what ``prune4rel clean`` wrote, with decisions merged; also tells what there is to say, in lines.

    Parameters
    ----------
    folder
        What ``prune4rel clean`` wrote.
    decisions
        What people decided; ``decisions.jsonl`` in the folder unless told.
    issues
        What becomes of labels that are believed to be wrong and that nobody settled: ``"correct"`` them, ``"drop"``
        their examples, or ``"keep"`` them as they are.
    """
    if issues not in ISSUES:
        raise InputError(f"issues: must be one of {', '.join(ISSUES)}, not {issues!r}", "issues")
    opened = ReviewFolder(folder)
    labels, said = opened.labels, []
    found = Path(folder) / DECISIONS if decisions is None else Path(decisions)
    if decisions is not None or found.is_file():
        settled = settle_from(
            found,
            len(labels),
            labels.class_names,
            given_label=labels.given_label,
            ids=labels.ids,
            content=labels.content,
        )
        labels = settle_labels(labels, settled)
        said = [f"decisions: {settled.summary}", *settled.notes, *settled.refused]
    open_issue = labels.is_label_issue if labels.verified is None else labels.is_label_issue & ~labels.verified
    new = (
        np.where(open_issue, labels.given_label, labels.corrected_label) if issues == "keep" else labels.corrected_label
    )
    stays = np.ones(len(labels), dtype=np.bool_) if labels.removed is None else ~labels.removed
    if issues == "drop":
        stays &= ~open_issue
    rows = np.flatnonzero(stays)
    changed = int((new[rows] != labels.given_label[rows]).sum())
    said.append(f"{len(rows):,} of {len(labels):,} examples, {changed:,} with another label than the one given")
    return Corrected(labels, rows, new[rows], opened), said


def export(
    folder: str | Path,
    to: str,
    output: str | Path,
    *,
    decisions: str | Path | None = None,
    issues: Issues = "correct",
    force: bool = False,
    **options: Any,
) -> list[str]:
    """Write a judged set with corrected labels, whole or not at all; nothing of the original is changed or moved.

    Parameters
    ----------
    folder, decisions, issues
        See `open_corrected`.
    to
        The form: one of `list_exports`.
    output
        The file or folder to write.
    force
        Replace what is there.
    **options
        The form's own.

    Returns
    -------
    What there is to say, in lines.
    """
    form = get(to)
    refuse_unknown(f"export {to!r}", options, form.options)
    check_writable(output, force=force, keep=[folder])
    corrected, said = open_corrected(folder, decisions=decisions, issues=issues)
    if not len(corrected.rows):
        raise InputError("no example is left to be written", "issues")
    train = corrected.train
    homes = {Path(str(file)).parent for file in (train.files or ())[:1]} if train is not None else set()
    if any(Path(output).resolve() in (home.resolve(), *home.resolve().parents) for home in (*homes, Path(folder))):
        raise InputError(f"{output}: the examples lie in there; choose another place", "output")

    write_whole(output, lambda place: form.write(corrected, place, **options), force=force)
    return said
