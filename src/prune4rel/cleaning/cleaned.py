"""`clean`: which labels are wrong, and what they should be, out of sample, from embeddings or probabilities alone."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.cleaning.encode import encode
from prune4rel.cleaning.inputs import as_dense
from prune4rel.cleaning.prepare import Prepared, as_flags, describe, prepare
from prune4rel.decisions import Settled, settle_from, settle_labels, settle_signals
from prune4rel.judging import Judgement, judge
from prune4rel.judging.arithmetic import Arithmetic
from prune4rel.judging.crowd import Consensus
from prune4rel.judging.duplicates import Duplicates, find_duplicates, unlike_others
from prune4rel.judging.features import NARROW
from prune4rel.judging.on_cluster import working_on
from prune4rel.judging.similar import Similar
from prune4rel.labels import Labels
from prune4rel.machine import Clock
from prune4rel.progress import Progress
from prune4rel.provenance import versions
from prune4rel.signals import Signals

if TYPE_CHECKING:
    from prune4rel.cleaning.write import Origin
    from prune4rel.encoders import Encoder

Floats = NDArray[np.floating[Any]]

AGREES = 0.995
"""Share of given labels with which honest probabilities hardly ever agree."""

AGREES_MORE = 0.95
"""The same where the neighbours, who know nothing of an example's own label, agree much less often."""

BY_HOW_MUCH = 0.1
VOTERS = 10


@dataclass(frozen=True, eq=False)
class Cleaned:
    """What was found out about n labels.

    Parameters
    ----------
    labels
        The table: given and predicted label, score, issue, confidence, decisions.
    signals
        Honest probabilities, embeddings and labels for whatever comes next: `p4r.select(signals=found.signals)`.
    judgement
        What judging said of the examples that could be read, with intervals.
    similar, duplicates, unlike
        Everyone's nearest others; groups of copies; (k,) examples unlike all others, the loneliest first. None and
        none without embeddings.
    consensus, annotators
        What the votes of several people came to, and who they are.
    settled
        What people decided.
    notes
        What the user should know, in sentences.
    seconds
        Time by step.
    """

    labels: Labels
    signals: Signals
    judgement: Judgement
    similar: Similar | None
    duplicates: Duplicates | None
    unlike: NDArray[np.int64]
    consensus: Consensus | None
    annotators: tuple[str, ...]
    settled: Settled | None
    notes: tuple[str, ...]
    seconds: dict[str, float]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Cleaned({len(self)} labels, {int(self.is_label_issue.sum())} issues, noise_rate={self.noise_rate:.3g})"

    @property
    def label_score(self) -> NDArray[np.float64]:
        """(n,) 0 to 1, how well the given label fits; low is suspicious."""
        return self.labels.label_score

    @property
    def is_label_issue(self) -> NDArray[np.bool_]:
        """(n,) whether the given label is believed to be wrong."""
        return self.labels.is_label_issue

    @property
    def predicted_label(self) -> NDArray[np.int64]:
        """(n,) the label that is believed to be right."""
        return self.labels.predicted_label

    @property
    def corrected_label(self) -> NDArray[np.int64]:
        """(n,) what a person decided; else the prediction where it is an issue; else the given label."""
        return self.labels.corrected_label

    @property
    def noise_rate(self) -> float:
        """Estimated share of given labels that are wrong."""
        return float(self.judgement.noise_rate)

    @property
    def noise_matrix(self) -> NDArray[np.float64]:
        """(C, C) by [true, given]: estimated share of a class's members that were given each label."""
        return self.judgement.noise_matrix

    @cached_property
    def worst_pairs(self) -> list[tuple[str, str, int]]:
        """Given class, the class it had better be, and of how many labels, most first."""
        some = np.flatnonzero(self.is_label_issue & (self.predicted_label != self.labels.given_label))
        pairs = np.stack([self.labels.given_label[some], self.predicted_label[some]], axis=1)
        found, times = np.unique(pairs, axis=0, return_counts=True)
        names = self.labels.class_names
        return [(names[found[at, 0]], names[found[at, 1]], int(times[at])) for at in np.argsort(-times, kind="stable")]

    def save(self, path: str | Path, *, source: "Origin | None" = None, force: bool = False) -> None:
        """Write a folder: labels, signals, neighbours, duplicates, noise, a report; `prune4rel review` opens it."""
        from prune4rel.cleaning.write import write_folder  # noqa: PLC0415 - it needs what is defined here

        write_folder(self, Path(path), source=source, force=force)


def clean(
    data: Any = None,
    *,
    embeddings: Any = None,
    labels: Any = None,
    encoder: "str | Encoder | None" = None,
    probabilities: Any = None,
    votes: Any = None,
    verified: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    decisions: str | Path | None = None,
    test_embeddings: Any = None,
    test_labels: Any = None,
    ids: Any = None,
    content: Any = None,
    class_names: Sequence[str] | None = None,
    noise_rate: float | None = None,
    skip_broken: bool = False,
    seed: int = 0,
    device: str = "auto",
    engine: str = "local",
    ray_address: str | None = None,
    progress: Progress | None = None,
) -> Cleaned:
    """Find wrong labels, and say what they should be, without a network being trained.

    Parameters
    ----------
    data
        Instead of single arrays: a DataFrame or Arrow table, then `labels` and `embeddings` are names of its columns;
        a `Dataset` of features or a `Signals`; or a path to a file or folder of arrays.
    embeddings
        (n, d) feature vectors, dense or sparse (CSR), of a network that did not see these labels.
    labels
        (n,) given labels: integers or names, as a list, array, pandas or Arrow column. (n, A) are votes of A people,
        -1 or ``""`` where somebody did not vote.
    encoder
        Where `data` holds images or texts (a folder of images, a table of paths or texts, a DataFrame, a data set of
        the library datasets, a `Dataset`): what makes vectors of them, by name (`list_encoders`) or opened.
    probabilities
        (n, C) of a model of your own, for examples it was not trained on (out of fold). With embeddings or alone.
    votes
        A table of votes instead of labels, one vote a row: which example, which annotator, which label.
    verified, removed
        (n,) bool: labels that are settled, and count as certain; examples that are not to count.
    decisions
        A file of what people decided, as `prune4rel review` writes it.
    test_embeddings, test_labels
        (m, d) and (m,) of the test split, to find training examples that lie in it, too.
    ids, content
        (n,) your own names for the examples, and digests of them.
    class_names
        C names, where labels are numbers or `probabilities` have another order.
    noise_rate
        Share of wrong labels, where you know it, such as from looking at a hundred chosen by chance.
    skip_broken
        Go on without rows that hold NaN or infinity.
    seed
        Of folds.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    engine, ray_address
        ``"ray"`` spreads the work over a Ray cluster, the one at that address or one that is started here: the same
        flags, scores that agree to a millionth.
    progress
        Who is told how far it is.

    Returns
    -------
    What was found, aligned with your rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 300)
    >>> embeddings = rng.normal(size=(3, 16))[truth] + 0.3 * rng.normal(size=(300, 16))
    >>> labels = np.where(np.arange(300) < 30, (truth + 1) % 3, truth)
    >>> found = clean(embeddings=embeddings, labels=labels)
    >>> bool((found.is_label_issue[:30]).mean() > 0.9), bool((found.corrected_label == truth).mean() > 0.98)
    (True, True)
    """
    listener = progress or Progress()
    clock = Clock()
    given = {
        "embeddings": embeddings,
        "labels": labels,
        "test_embeddings": test_embeddings,
        "test_labels": test_labels,
        "ids": ids,
        "content": content,
        "class_names": class_names,
    }
    if encoder is not None:
        given = encode(data, encoder, given, device=device, skip_broken=skip_broken, progress=progress)
        data = None
    task = prepare(data, probabilities=probabilities, votes=votes, skip_broken=skip_broken, **given)
    settled, given_label, certain, gone = _settle(task, decisions, verified, removed)
    some = np.flatnonzero(task.known)
    rows, test_rows = (None, None) if task.rows is None else as_dense(_take(task.rows, some), task.test_rows, seed)
    clock.lap("reading")
    listener.say(describe(task))
    with working_on(engine, ray_address, device) as numbers:
        similar, duplicates, unlike = _look_around(task, some, rows, test_rows, given_label, numbers, listener)
        clock.lap("neighbours")
        judgement = judge(
            _take(task.rows, some) if hasattr(task.rows, "tocsr") else rows,
            task.numbered.labels[some],
            n_classes=task.n_classes,
            probabilities=None if task.probabilities is None else task.probabilities[some],
            verified=None if certain is None else certain[some],
            decided=None if settled is None else settled.decided_label[some],
            removed=None if gone is None else gone[some],
            noise_rate=noise_rate,
            groups=None if duplicates is None else duplicates.groups_of(task.n)[some],
            similar=None if rows is None or rows.shape[1] < NARROW else similar,
            seed=seed,
            numbers=numbers,
            progress=listener,
        )
        clock.lap("judging")
    notes = (*task.notes, *_fitted(task, some, similar, given_label), *judgement.notes)
    table = _table(task, judgement, some, given_label, certain, gone, settled)
    signals = _signals(task, judgement, some, rows, given_label, certain, settled, gone)
    return Cleaned(
        labels=table,
        signals=signals,
        judgement=judgement,
        similar=_scatter_similar(similar, some, task.n),
        duplicates=duplicates,
        unlike=unlike,
        consensus=task.numbered.votes,
        annotators=task.numbered.annotators,
        settled=settled,
        notes=tuple(dict.fromkeys(notes)),
        seconds=clock.laps,
    )


def _settle(
    task: Prepared, decisions: str | Path | None, verified: ArrayLike | None, removed: ArrayLike | None
) -> tuple[Settled | None, NDArray[np.int64], NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Return what people decided, labels with it put in, and which are certain and which are out."""
    given = task.numbered.labels
    certain, gone = as_flags(verified, "verified", task.n), as_flags(removed, "removed", task.n)
    if decisions is None:
        return None, given, certain, gone
    settled = settle_from(
        decisions, task.n, task.numbered.class_names, given_label=given, ids=task.ids, content=task.content
    )
    certain = settled.verified if certain is None else certain | settled.verified
    gone = settled.removed if gone is None else gone | settled.removed
    return settled, np.where(settled.verified, settled.decided_label, given), certain, gone


def _take(rows: Any, some: NDArray[np.int64]) -> Any:
    return rows if len(some) == rows.shape[0] else rows[some]


def _look_around(
    task: Prepared,
    some: NDArray[np.int64],
    rows: Floats | None,
    test_rows: Floats | None,
    given: NDArray[np.int64],
    numbers: Arithmetic,
    progress: Progress,
) -> tuple[Similar | None, Duplicates | None, NDArray[np.int64]]:
    if rows is None:
        return None, None, np.empty(0, dtype=np.int64)
    similar = numbers.similar(rows, progress=progress)
    found = find_duplicates(rows, given[some], similar, test_embeddings=test_rows, test_labels=task.test_labels)
    index = np.where(found.split == "train", some[np.where(found.split == "train", found.index, 0)], found.index)
    return similar, replace(found, index=index), some[unlike_others(similar)]


def _fitted(
    task: Prepared, some: NDArray[np.int64], similar: Similar | None, given: NDArray[np.int64]
) -> tuple[str, ...]:
    """Warn where probabilities look as if they were fitted on the labels they are to judge."""
    if task.probabilities is None or task.n_classes < 2:
        return ()
    labels = given[some]
    agrees = float((task.probabilities[some].argmax(axis=1) == labels).mean())
    suspicious = agrees >= AGREES
    if similar is not None and agrees >= AGREES_MORE and similar.indices.shape[1]:
        votes = labels[similar.indices[:, :VOTERS]]
        counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
        majority = votes[np.arange(len(votes)), counts.argmax(axis=1)]
        suspicious |= agrees - float((majority == labels).mean()) > BY_HOW_MUCH
    if not suspicious:
        return ()
    text = (
        f"The probabilities agree with {agrees:.1%} of the labels they are to judge: they look as if they were fitted "
        "on them, and then they cannot tell which are wrong. Use those of a model that was trained without the example "
        "(cross-validation)."
    )
    warnings.warn(text, stacklevel=4)
    return (text,)


def _table(
    task: Prepared,
    judgement: Judgement,
    some: NDArray[np.int64],
    given: NDArray[np.int64],
    certain: NDArray[np.bool_] | None,
    gone: NDArray[np.bool_] | None,
    settled: Settled | None,
) -> Labels:
    """Put the judgement where the examples are; those that could not be read keep their label, judged by nobody."""
    own = task.numbered.labels
    predicted, score = own.copy(), np.ones(task.n)
    issue, confidence = np.zeros(task.n, dtype=np.bool_), np.zeros(task.n)
    source = np.where(task.known, "judging", "nobody")
    predicted[some], score[some] = judgement.predicted_label, judgement.label_score
    issue[some], confidence[some] = judgement.is_label_issue, judgement.confidence
    if certain is not None:
        predicted = np.where(certain, given, predicted)
        issue = np.where(certain, given != own, issue)
        score = np.where(certain, (given == own).astype(float), score)
        confidence = np.where(certain, 1.0, confidence)
        source = np.where(certain, "person", source)
    rate = judgement.noise_rate if np.isfinite(judgement.noise_rate) else None
    interval = [float(end) if np.isfinite(end) else None for end in judgement.noise_rate_interval]
    table = Labels(
        given_label=own,
        predicted_label=predicted,
        label_score=score,
        is_label_issue=issue,
        confidence=confidence,
        class_names=task.numbered.class_names,
        verified=certain,
        removed=gone,
        ids=task.ids,
        source=source,
        content=task.content,
        noise_rate=rate,
        noise_matrix=judgement.noise_matrix,
        about={
            "made_by": "clean",
            "options": dict(judgement.options),
            "noise_rate_interval": interval,
            "notes": list(judgement.notes),
            "provenance": {"versions": versions()},
        },
    )
    return table if settled is None else replace(settle_labels(table, settled), verified=certain, removed=gone)


def _signals(
    task: Prepared,
    judgement: Judgement,
    some: NDArray[np.int64],
    rows: Floats | None,
    given: NDArray[np.int64],
    certain: NDArray[np.bool_] | None,
    settled: Settled | None,
    gone: NDArray[np.bool_] | None,
) -> Signals:
    """Return signals whose row i is the user's: what could not be read is not known."""
    C = task.n_classes
    probabilities = np.full((task.n, C), 1.0 / C, dtype=np.float32)
    probabilities[some] = judgement.probabilities
    embeddings = rows
    if rows is not None and len(some) < task.n:
        embeddings = np.zeros((task.n, rows.shape[1]), dtype=rows.dtype)
        embeddings[some] = rows
    known = task.known if gone is None else task.known & ~gone
    signals = Signals(
        labels=given,
        probabilities=probabilities,
        embeddings=embeddings,
        known=None if known.all() else known,
        verified=certain,
        ids=task.ids,
        class_names=task.numbered.class_names,
    )
    return signals if settled is None else settle_signals(signals, settled)


def _scatter_similar(similar: Similar | None, some: NDArray[np.int64], n: int) -> Similar | None:
    """Let neighbours go by the user's rows; rows that could not be read have themselves, at similarity -1."""
    if similar is None or len(some) == n:
        return similar
    indices = np.repeat(np.arange(n)[:, None], similar.indices.shape[1], axis=1)
    similarities = np.full(indices.shape, -1.0, dtype=np.float32)
    indices[some], similarities[some] = some[similar.indices], similar.similarities
    return replace(similar, indices=indices, similarities=similarities)
