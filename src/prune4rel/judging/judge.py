"""Judging labels: embeddings (or probabilities) and labels in; how likely each label is right, and what else it may be.

Everything is out of sample: no example is judged by a head that has learnt from its own label.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from prune4rel.errors import InputError
from prune4rel.judging.again import (
    SHARE_OF_SECOND,
    Heard,
    Look,
    cast_label_votes,
    second_heads,
    vote_weights,
    with_votes,
)
from prune4rel.judging.arithmetic import Arithmetic, arithmetic_on
from prune4rel.judging.choose import SHARPENINGS, Voice, choose_voice, loss_through, plain_loss
from prune4rel.judging.decide import Grounds, decide
from prune4rel.judging.folds import FOLDS, assign_folds
from prune4rel.judging.heads import SHRINKAGES, discriminants, scores_of
from prune4rel.judging.rows import Floats
from prune4rel.judging.similar import Similar
from prune4rel.judging.transition import Evidence, Fit, fit_transition
from prune4rel.progress import Progress

CHOOSING = 20_000
CHOOSING_NUMBERS = 8_000_000
"""Rows, and numbers in them, by which the strength of heads is chosen."""

FEWEST = 3
"""Members a class must have for its labels to be doubted: their judges must have seen two others."""

FLOOR = 1e-7
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
BESIDE = 1.44
"""How much blunter and sharper heads are read to see how far estimates depend on it."""

CLEARLY = 0.02
NINE_IN_TEN = 1.645
SUSPICIOUS = 0.985
"""Share of labels that probabilities agree with from which on they are likely to have been fitted to them."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What judging says of n examples in C classes.

    Parameters
    ----------
    probabilities
        (n, C) float32, how likely each class is the true one, by everything that is known; rows sum to 1.
    label_score
        (n,) float64, how likely the given label is right; low is suspicious.
    predicted_label
        (n,) int64, the likeliest class; the given one throughout unless labels themselves speak for some being wrong.
    is_label_issue
        (n,) whether the label had better be looked at: it is right with a probability below two thirds. Where no other
        label is likelier, `predicted_label` is the given one all the same. Where labels do not tell whether they or
        heads err, the third of the disagreements that is least likely right.
    confidence
        (n,) float64, how likely `predicted_label` is right.
    noise_rate
        Estimated share of wrong labels; NaN where nothing can be said.
    noise_rate_interval
        Between what it lies, as far as the labels themselves can tell.
    noise_matrix
        (C, C) float64 [true, given], how often each class is given each label; rows sum to 1.
    noise_matrix_error
        (C, C) float64 its standard errors.
    notes
        What a user should know.
    stats, options
        Numbers about the work, and how it was done.
    """

    probabilities: NDArray[np.float32]
    label_score: Floats
    predicted_label: NDArray[np.int64]
    is_label_issue: NDArray[np.bool_]
    confidence: Floats
    noise_rate: float
    noise_rate_interval: tuple[float, float]
    noise_matrix: Floats
    noise_matrix_error: Floats
    notes: tuple[str, ...]
    stats: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True, eq=False)
class _Case:
    """What is to be judged, checked: (n,) labels, which are settled, which take part, and their folds."""

    labels: NDArray[np.int64]
    decided: NDArray[np.int64]
    n_classes: int
    settled: NDArray[np.bool_]
    use: NDArray[np.bool_]
    folds: NDArray[np.int64]
    groups: NDArray[np.int64] | None

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """(n,) whose labels may be wrong."""
        return self.use & ~self.settled

    @property
    def telling(self) -> NDArray[np.bool_]:
        """(n,) whose labels tell how often labels go wrong: the doubtful ones, and those known as they were given."""
        return self.use & (~self.settled | (self.decided >= 0))

    @property
    def truth(self) -> NDArray[np.int64]:
        """(n,) the labels that heads learn from: as decided, else as given."""
        return np.where(self.decided >= 0, self.decided, self.labels)


def judge(
    embeddings: Any,
    labels: ArrayLike,
    *,
    n_classes: int | None = None,
    probabilities: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    decided: ArrayLike | None = None,
    removed: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    noise_rate: float | None = None,
    similar: Similar | None = None,
    seed: int = 0,
    device: str = "cpu",
    numbers: Arithmetic | None = None,
    progress: Progress | None = None,
) -> Judgement:
    """Judge labels by what other examples are like.

    Parameters
    ----------
    embeddings
        (n, d) numbers, dense or a SciPy sparse matrix in compressed rows; None where only probabilities are given.
    labels
        (n,) given labels, integers from 0 on.
    n_classes
        C; the largest label + 1 if left out.
    probabilities
        (n, C) of a model of your own that has not learnt from the labels it is asked about.
    verified
        (n,) labels that are settled: they count as right and are never an issue.
    decided
        (n,) what a person decided of `labels`, -1 where nobody did. That is settled, too, and heads learn from it; how
        often labels go wrong is still learnt from the labels as they were given: whoever settles the most suspicious
        ones first would otherwise make all others look cleaner than they are.
    removed
        (n,) examples that are no part of it: nothing is learnt from them.
    groups
        (n,) a number that copies of one example share; they are judged by others only.
    noise_rate
        Share of wrong labels, where you know it, such as from looking at a hundred chosen by chance: so many are issues
        then, and most of these are changed, also where the labels alone do not tell whether they or heads err.
    similar
        Everyone's nearest others, where they are known already.
    seed
        Of the folds.
    device
        ``"cpu"`` or ``"cuda"``.
    numbers
        Who goes through the rows, instead of a device of this machine.
    progress
        Told how far the work is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> true = np.arange(300) % 3
    >>> embeddings = 6 * np.eye(8)[true] + rng.normal(size=(300, 8))
    >>> labels = true.copy()
    >>> labels[:30] = (true[:30] + 1) % 3
    >>> found = judge(embeddings, labels)
    >>> np.flatnonzero(found.is_label_issue).tolist() == list(range(30))
    True
    >>> (found.predicted_label == true).all(), round(found.noise_rate, 1)
    (np.True_, 0.1)
    """
    progress = Progress() if progress is None else progress
    if noise_rate is not None and not 0 <= noise_rate < 1:
        raise InputError(f"noise_rate must be a share from 0 to below 1, not {noise_rate}", "noise_rate")
    case = _check(embeddings, labels, n_classes, probabilities, verified, decided, removed, groups, seed)
    present = len(np.unique(case.labels[case.use]))
    if present < 2 or case.doubtful.sum() < 2:
        what = "all labels are the same" if present == 1 else "there are too few labels"
        return _undecided(case, f"{what}: whether any of them is wrong cannot be said")
    numbers = arithmetic_on(device) if numbers is None else numbers
    given, folds, n = case.labels, case.folds, len(case.labels)
    some = _sample(case, seed)
    notes: list[str] = []
    options: dict[str, Any] = {"seed": seed, "folds": int(folds.max()) + 1, "device": device}
    own = None if probabilities is None else _logarithms(probabilities, n, case.n_classes)
    with (
        threadpool_limits(1, "blas"),
        progress.task("judging labels", (2.0 if embeddings is None else 7.0) * n) as advance,
    ):
        scores: Any = None
        first, share_of_own = None, 0.0
        if embeddings is not None:
            features = numbers.features(embeddings, advance)
            sums = numbers.sums(features, folds, case.truth, case.n_classes, case.use, advance)
            heads = discriminants(sums)
            seen = numbers.host(features, some)
            tried = [plain_loss(scores_of(seen, folds[some], head), given[some])[0] for head in heads]
            best = int(np.argmin(tried))
            scores = numbers.scores(features, folds, heads[best], advance)
            first = Look(features, sums, SHRINKAGES[best])
            options["shrinkage"] = first.shrinkage
        if own is not None:
            notes += _suspicion(own, case)
            scores, share_of_own = _blend(numbers, scores, own, given, some)
        sample = numbers.host(scores, some)
        if not _knows_something(sample, given[some]):
            return _undecided(
                case, "the embeddings tell no more of the labels than chance does: they are judged by nothing"
            )
        voice = choose_voice(sample, given[some], folds[some] % 2 == 0)
        fit = numbers.fit(scores, given, case.telling, voice.sharpness, voice.belief)
        advance(float(n))
        sharpness, helped = voice.sharpness, None
        if first is not None:
            options["weight_of_probabilities"] = share_of_own
            heard, helped = _look_again(
                numbers, case, first, scores * sharpness, fit.matrix, 1.0 - share_of_own, some, similar
            )
            scores, sharpness, options["weight_of_votes"] = heard
        q = numbers.host(numbers.posterior(scores, given, sharpness, fit.matrix))
        advance(float(n))
        low, high = (_reading(sample, given[some], voice, factor) for factor in (1 / BESIDE, BESIDE))
    options |= {"sharpness": voice.sharpness, "sharpness_without_noise": voice.plain, "belief": voice.belief}
    disagree = float((sample.argmax(axis=1) != given[some]).mean())
    return _conclude(
        case, q, fit, (low, high), Grounds(len(some), voice.losses, disagree, helped), noise_rate, notes, options
    )


def _look_again(
    numbers: Arithmetic,
    case: _Case,
    first: Look,
    scores: Any,
    matrix: Floats,
    share: float,
    some: NDArray[np.int64],
    similar: Similar | None,
) -> tuple[Heard, float]:
    """Hear second heads and neighbours, too, who learn from what the first look says; settled labels are certain.

    Also returns how much better neighbours foretell given labels, in nats a label, when they vote with what the first
    look takes them for instead of with their own labels: corrections that are right make better witnesses of them.
    """
    given, certain = case.labels, np.flatnonzero(case.settled)

    def believed(scores: Any, sharpness: float) -> Any:
        q = numbers.posterior(scores, given, sharpness, matrix)
        numbers.pin(q, certain, case.truth[certain])
        return q

    near = numbers.similar(first.features) if similar is None else similar
    weights = vote_weights(near.indices, near.similarities, case.use, case.groups)
    q = believed(scores, 1.0)
    helped = _help_to_neighbours(numbers, case, q, near.indices[some], weights[some], matrix, given[some])
    heads, sharp = second_heads(numbers, first, case.folds, q, case.use, matrix=matrix, labels=given, some=some)
    second = SHARE_OF_SECOND * share
    scores = scores * (1 - second) + heads * (second * sharp)
    q = believed(scores, loss_through(numbers.host(scores, some), given[some], matrix)[1])
    votes = numbers.votes(q, near.indices, weights)
    return with_votes(numbers, scores, votes, matrix, given, some), helped


def _help_to_neighbours(
    numbers: Arithmetic,
    case: _Case,
    q: Any,
    indices: NDArray[np.int64],
    weights: NDArray[np.float32],
    matrix: Floats,
    labels: NDArray[np.int64],
) -> float:
    witnesses, judged = np.unique(indices), case.truth.copy()
    judged[witnesses] = numbers.host(q, witnesses).argmax(axis=1)
    votes = (cast_label_votes(each, case.n_classes, indices, weights) for each in (case.truth, judged))
    before, after = (loss_through(each, labels, matrix)[0] for each in votes)
    return before - after


def _check(
    embeddings: Any,
    labels: ArrayLike,
    n_classes: int | None,
    probabilities: ArrayLike | None,
    verified: ArrayLike | None,
    decided: ArrayLike | None,
    removed: ArrayLike | None,
    groups: ArrayLike | None,
    seed: int,
) -> _Case:
    given = np.asarray(labels)
    n = len(given)
    if n == 0:
        raise InputError("labels are empty: there is nothing to judge", "labels")
    if embeddings is None and probabilities is None:
        raise InputError("give embeddings, or probabilities of a model of your own, or both", "embeddings")
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min() < 0:
        raise InputError("labels must be one column of whole numbers from 0 on", "labels")
    given = given.astype(np.int64)
    classes = max(int(given.max()) + 1, n_classes or 0)
    for name, rows in (("embeddings", embeddings), ("probabilities", probabilities)):
        if rows is not None and (len(np.shape(rows)) != 2 or np.shape(rows)[0] != n):
            raise InputError(f"{name} must have one row for each of the {n:,} labels, not {np.shape(rows)}", name)
    columns: dict[str, NDArray[Any] | None] = {}
    for name, column in (("verified", verified), ("decided", decided), ("removed", removed), ("groups", groups)):
        columns[name] = None if column is None else np.asarray(column)
        if column is not None and np.shape(column) != (n,):
            raise InputError(f"{name} must have one entry for each of the {n:,} labels, not {np.shape(column)}", name)
    known = np.full(n, -1) if columns["decided"] is None else columns["decided"].astype(np.int64)
    if known.max() >= classes:
        raise InputError(f"decided must be classes below {classes}, not {known.max()}", "decided")
    settled = known >= 0
    settled |= False if columns["verified"] is None else columns["verified"].astype(bool)
    use = np.ones(n, dtype=bool) if columns["removed"] is None else ~columns["removed"].astype(bool)
    folds = assign_folds(given, max(2, min(FOLDS, n)), groups=columns["groups"], seed=seed)
    return _Case(given, known, classes, settled, use, folds, columns["groups"])


def _sample(case: _Case, seed: int) -> NDArray[np.int64]:
    pool = np.flatnonzero(case.telling)
    most = min(CHOOSING, CHOOSING_NUMBERS // case.n_classes)
    if len(pool) <= most:
        return pool
    return np.sort(np.random.default_rng(seed).choice(pool, most, replace=False))


def _logarithms(probabilities: ArrayLike, n: int, n_classes: int) -> NDArray[np.float32]:
    given = np.asarray(probabilities, dtype=np.float32)
    if given.shape[1] > n_classes:
        raise InputError(f"probabilities have {given.shape[1]} columns for {n_classes} classes", "probabilities")
    own = np.full((n, n_classes), np.float32(FLOOR))
    own[:, : given.shape[1]] = np.maximum(given, np.float32(FLOOR))
    logarithms: NDArray[np.float32] = np.log(own / own.sum(axis=1, keepdims=True))
    return logarithms


def _suspicion(own: NDArray[np.float32], case: _Case) -> list[str]:
    agree = float((own.argmax(axis=1) == case.labels)[case.doubtful].mean())
    if agree < SUSPICIOUS:
        return []
    warning = (
        f"the probabilities agree with {agree:.1%} of the given labels. If their model was fitted to these labels, "
        "they are no evidence: give out-of-fold ones, such as scikit-learn's cross_val_predict makes"
    )
    return [warning]


def _blend(
    numbers: Arithmetic, scores: Any, own: NDArray[np.float32], labels: NDArray[np.int64], some: NDArray[np.int64]
) -> tuple[Any, float]:
    """Weigh heads and a user's own model as foretells labels best; returns scores, and the weight of the model."""
    if scores is None:
        return numbers.bring(own), 1.0
    sample, beside = numbers.host(scores, some), own[some]
    sharp = plain_loss(sample, labels[some])[1], plain_loss(beside, labels[some])[1]
    mixed = {
        weight: np.float32((1 - weight) * sharp[0]) * sample + np.float32(weight * sharp[1]) * beside
        for weight in WEIGHTS
    }
    best = min(mixed, key=lambda weight: plain_loss(mixed[weight], labels[some])[0])
    blended = scores * float((1 - best) * sharp[0]) + numbers.bring(own) * float(best * sharp[1])
    return blended, best


def _reading(scores: NDArray[np.float32], labels: NDArray[np.int64], voice: Voice, factor: float) -> Fit:
    """Read heads blunter or sharper than they are read: how far the matrix depends on that."""
    return fit_transition(Evidence.of(scores, labels, voice.sharpness * factor), belief=voice.belief)


def _wrong(fit: Fit) -> float:
    return 1.0 - float(np.trace(fit.counts)) / max(float(fit.counts.sum()), 1.0)


def _knows_something(scores: NDArray[np.float32], labels: NDArray[np.int64]) -> bool:
    """Whether heads foretell labels better than the most frequent label does, beyond chance."""
    n, share = len(labels), np.bincount(labels).max() / len(labels)
    right = float((scores.argmax(axis=1) == labels).mean())
    shares = np.bincount(labels, minlength=scores.shape[1]) / n
    entropy = float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
    clearly = right > share + 3.0 * float(np.sqrt(share * (1 - share) / n))
    return clearly or plain_loss(scores, labels)[0] < entropy - CLEARLY


def _conclude(
    case: _Case,
    q: NDArray[np.float32],
    fit: Fit,
    beside: tuple[Fit, Fit],
    heard: Grounds,
    told: float | None,
    notes: list[str],
    options: dict[str, Any],
) -> Judgement:
    given, n = case.labels, len(case.labels)
    q[case.settled] = np.eye(case.n_classes, dtype=np.float32)[case.truth[case.settled]]
    members = np.bincount(given[case.use], minlength=case.n_classes)
    few = members[given] < FEWEST
    q[few] = np.eye(case.n_classes, dtype=np.float32)[given[few]]
    if (few & case.doubtful).any():
        notes.append(
            f"{int(((members > 0) & (members < FEWEST)).sum())} classes have fewer than {FEWEST} examples: "
            "nobody can judge their labels, which count as right"
        )
    verdict, q, predicted, issues = decide(q, given, case.doubtful & ~few, heard, told)
    score = q[np.arange(n), given].astype(np.float64)
    rate = float(1.0 - score[case.use].mean())
    sampling = NINE_IN_TEN * float(np.sqrt(rate * (1.0 - rate) / max(int(case.use.sum()), 1)))
    share = float(case.telling.sum() / max(int(case.use.sum()), 1))
    low, high = (share * _wrong(each) for each in beside)
    if verdict == "told":
        low = high = rate
    elif verdict == "undecided":
        low, high = 0.0, share * heard.disagree
        notes.append(
            f"heads disagree with {heard.disagree:.1%} of the labels, and it cannot be told who errs, labels or heads: "
            "the most suspicious labels are issues to be looked at, and none is changed unseen. If you know about how "
            "many are wrong, such as from looking at a hundred drawn at random, say so: noise_rate (--noise-rate)"
        )
    drawn = fit.matrix * (1.0 - fit.matrix) / np.maximum(fit.counts.sum(axis=1, keepdims=True), 1.0)
    read = (beside[1].matrix - beside[0].matrix) / 2.0
    return Judgement(
        probabilities=q,
        label_score=score,
        predicted_label=predicted,
        is_label_issue=issues,
        confidence=q[np.arange(n), predicted].astype(np.float64),
        noise_rate=rate,
        noise_rate_interval=(max(0.0, min(low, rate) - sampling), min(1.0, max(high, rate) + sampling)),
        noise_matrix=fit.matrix,
        noise_matrix_error=np.sqrt(drawn + read**2),
        notes=tuple(notes),
        stats={
            "verdict": verdict,
            "loss": fit.loss,
            "disagree": heard.disagree,
            "helped": heard.helped,
            "losses": dict(zip((round(each, 2) for each in SHARPENINGS), heard.losses, strict=True)),
        },
        options=options,
    )


def _undecided(case: _Case, why: str) -> Judgement:
    """Every label counts as right, and nothing is known of how many are."""
    n, unknown = len(case.labels), float("nan")
    one_hot = np.eye(case.n_classes, dtype=np.float32)
    return Judgement(
        probabilities=one_hot[case.labels],
        label_score=np.ones(n),
        predicted_label=case.labels.copy(),
        is_label_issue=np.zeros(n, dtype=bool),
        confidence=np.ones(n),
        noise_rate=unknown,
        noise_rate_interval=(0.0, 1.0),
        noise_matrix=one_hot.astype(np.float64),
        noise_matrix_error=np.full((case.n_classes, case.n_classes), unknown),
        notes=(why,),
        stats={},
        options={},
    )
