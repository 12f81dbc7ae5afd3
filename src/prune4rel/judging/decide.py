"""When a label is an issue, and when it is changed: only where labels themselves speak for their being wrong.

Heads that know too little disagree with right labels as with wrong ones, and the labels alone do not always tell the
two apart: people err where examples are hard. So everything has to pass a test that corrections would pass if they were
right, or no label is changed unseen.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prune4rel.judging.rows import Floats

Verdict = Literal["wrong", "undecided", "right", "told"]

DOUBT, DOUBT_OF_RIGHT = 2.0 / 3.0, 0.5
"""A label is an issue where it is right less surely than that; the second where none seems wrong."""

SURE_ENOUGH = 0.6
"""How likely changes have to be right in the mean."""

HELP = 0.03
"""Nats a wrong label: so much better have neighbours to foretell given labels when they vote with judged ones."""

CLEAR, BEYOND_CHANCE = 0.3, 3.0
"""Nats a wrong label, and in all: where reading heads sharper explains labels so much better, the labels err."""

EXPLAINED, EXPLAINED_OF_MANY, MANY, SURE = 2.0 / 3.0, 0.5, 0.1, 0.75
"""Where so much of the heads' disagreements is judged to be errors of labels (less is enough where many labels are
judged wrong), and changes would be right that surely in the mean, heads themselves err too seldom to mislead. Where
there are no neighbours, many wrong labels are enough."""

AGAINST = 0.003
"""Nats a label: where the least sharpening explains labels so much worse, none seems wrong."""

SHARE = 1.0 / 3.0
"""Unless it is clear how many labels are wrong, this share of the labels that heads disagree with are issues at least;
where nothing is decided, at most so many are wrong."""

SURELY = 0.75
"""Where somebody has told how many labels are wrong, this share of the issues is changed: the most suspicious ones."""

STEEPEST = 1e6
"""Largest exponent that is tried for scores, so that as many labels are wrong as somebody has told."""


class Decided(NamedTuple):
    """The verdict on labels as a whole; (n, C) what each example is, (n,) what it is taken for, and the issues."""

    verdict: Verdict
    probabilities: NDArray[np.float32]
    predicted: NDArray[np.int64]
    issues: NDArray[np.bool_]


class Grounds(NamedTuple):
    """What speaks for labels being wrong, and against it.

    Parameters
    ----------
    n
        How many labels testify.
    losses
        Held-out mean of -log p(label), heads read as labels alone suggest first, then sharper and sharper.
    disagree
        Share of labels that heads disagree with.
    helped
        How much better neighbours foretell given labels when they vote with judged ones, in nats a label; None where
        nobody knows who is near whom.
    """

    n: int
    losses: Sequence[float]
    disagree: float
    helped: float | None


def verdict_on(heard: Grounds, sureness: float, rate: float) -> Verdict:
    """Say whether labels speak for it that some are wrong.

    Parameters
    ----------
    heard
        What speaks for it.
    sureness
        How likely changes would be right, in the mean; NaN where there are none.
    rate
        Share of wrong labels, as judged.

    Examples
    --------
    >>> good, bad = (Grounds(1000, [1.0, 0.99], 0.3, helped) for helped in (0.01, -0.01))
    >>> verdict_on(good, 0.8, 0.1), verdict_on(bad, 0.8, 0.1), verdict_on(bad, 0.8, 0.25)
    ('wrong', 'undecided', 'wrong')
    >>> verdict_on(Grounds(1000, [1.0, 1.01], 0.3, 0.01), 0.8, 0.1)
    'right'
    """
    if min(heard.losses) == heard.losses[0]:
        return "right" if heard.losses[1] - heard.losses[0] > AGAINST else "undecided"
    if sureness < SURE_ENOUGH:
        return "undecided"
    speaks = _clear(heard, rate) or _helps(heard, rate)
    enough = EXPLAINED_OF_MANY if rate >= MANY else EXPLAINED
    explained = rate >= enough * heard.disagree and sureness >= SURE
    return "wrong" if speaks or explained else "undecided"


def _clear(heard: Grounds, rate: float) -> bool:
    """Tell whether labels as a whole are explained so much better that nothing else has to speak for it."""
    evidence = heard.losses[0] - min(heard.losses)
    return evidence >= CLEAR * rate and heard.n * evidence >= BEYOND_CHANCE


def _helps(heard: Grounds, rate: float) -> bool:
    """Tell whether neighbours foretell given labels better once they vote with judged ones, beyond chance."""
    if heard.helped is None:
        return rate >= MANY
    return heard.helped >= HELP * rate and heard.n * heard.helped >= BEYOND_CHANCE


def decide(
    q: NDArray[np.float32],
    given: NDArray[np.int64],
    doubtful: NDArray[np.bool_],
    heard: Grounds,
    told: float | None = None,
) -> Decided:
    """Decide which labels are issues, and what examples are taken for.

    Parameters
    ----------
    q
        (n, C) float32, how likely each class is the true one.
    given, doubtful
        (n,) labels, and which of them may be wrong.
    heard
        What speaks for labels being wrong.
    told
        Share of wrong labels, where somebody knows it.

    Examples
    --------
    >>> q, given = np.float32([[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]]), np.array([0, 0, 0])
    >>> found = decide(q, given, np.ones(3, bool), Grounds(1000, [1.0, 0.98], 0.5, 0.0))
    >>> found.verdict, found.predicted.tolist(), found.issues.tolist()
    ('wrong', [0, 0, 1], [False, True, True])
    >>> found = decide(q, given, np.ones(3, bool), Grounds(1000, [1.0, 0.98], 1.0, -0.1))
    >>> found.verdict, found.predicted.tolist(), found.issues.tolist()
    ('undecided', [0, 0, 0], [False, False, True])
    >>> found = decide(q, given, np.ones(3, bool), Grounds(1000, [1.0, 0.98], 1.0, -0.1), told=2 / 3)
    >>> found.issues.tolist(), round(float(found.probabilities[:, 0].mean()), 2)
    ([False, True, True], 0.33)
    """
    rows = np.flatnonzero(doubtful)
    if told is not None:
        return _as_told(q, given, rows, told)
    predicted = q.argmax(axis=1).astype(np.int64)
    score = _of(q, given)
    changes = doubtful & (predicted != given)
    sureness = float(_of(q, predicted)[changes].mean()) if changes.any() else float("nan")
    rate = float(1.0 - score[doubtful].mean()) if doubtful.any() else 0.0
    verdict = verdict_on(heard, sureness, rate)
    most = SHARE * heard.disagree
    issues = np.zeros(len(given), dtype=bool)
    issues[_lowest(score, rows, int(most * len(rows)))] = True
    if verdict == "wrong":
        sure = doubtful & (score < DOUBT)
        return Decided(verdict, q, predicted, sure if _clear(heard, rate) else sure | issues)
    predicted[doubtful] = given[doubtful]
    if verdict == "right":
        return Decided(verdict, q, predicted, doubtful & (score < DOUBT_OF_RIGHT))
    if rate > most:
        share = np.float32(most / rate)
        q[rows] *= share
        q[rows, given[rows]] += 1 - share
    return Decided(verdict, q, predicted, issues)


def _as_told(q: NDArray[np.float32], given: NDArray[np.int64], rows: NDArray[np.int64], told: float) -> Decided:
    """Take so many labels for wrong, the most suspicious ones; probabilities say so, too, in the same order."""
    score = _of(q, given)
    worst = _lowest(score, rows, round(told * len(rows)))
    score = score[rows]
    issues = np.zeros(len(given), dtype=bool)
    issues[worst] = True
    others = q[worst]
    others[np.arange(len(worst)), given[worst]] = -1.0
    predicted = given.copy()
    changed = round(SURELY * len(worst))
    predicted[worst[:changed]] = others.argmax(axis=1)[:changed]
    low, high = -np.log(STEEPEST), np.log(STEEPEST)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1.0 - score ** np.exp(middle)).mean() < told else (low, middle)
    right = score ** np.exp(low)
    left = np.maximum(1.0 - score, np.finfo(np.float32).tiny)
    q[rows] *= ((1.0 - right) / left)[:, None].astype(np.float32)
    q[rows, given[rows]] = right
    q[rows] /= q[rows].sum(axis=1, keepdims=True)
    return Decided("told", q, predicted, issues)


def _lowest(score: Floats, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Those of some rows whose scores are lowest, the lowest first."""
    return rows[np.argsort(score[rows], kind="stable")[:count]]


def _of(q: NDArray[np.float32], labels: NDArray[np.int64]) -> Floats:
    chosen: Floats = q[np.arange(len(q)), labels].astype(np.float64)
    return chosen
