"""Orders, held against slow ones."""

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.labels import Labels
from prune4rel.review import ORDERS, order_rows
from prune4rel.review.order import DOUBTFUL, TOLD, doubts


def some_labels(rng, n, C=3):
    score = rng.random(n).round(2)
    issue = score < 0.4
    given = rng.integers(0, C, n)
    return Labels(
        given_label=given,
        predicted_label=np.where(issue, (given + 1) % C, given),
        label_score=score,
        is_label_issue=issue,
        confidence=np.where(issue, rng.uniform(0.4, 1, n), score),
        class_names=tuple("abc"[:C]),
    )


def neighbours_among(rng, n, k):
    k = min(k, n - 1)
    near = np.array([rng.permutation(np.delete(np.arange(n), row))[:k] for row in range(n)]).reshape(n, k)
    like = rng.uniform(0.2, 1, (n, n)).astype(np.float32)
    return near, np.take_along_axis(np.maximum(like, like.T), near, axis=1)


def most_worth(doubt, decided, near, like):
    """Take one at a time what raises the sum of tanh over all doubtful ones the most, looking at everybody."""
    n = len(doubt)
    weights = np.eye(n)
    for row in range(n):
        for other, similar in zip(near[row], like[row], strict=True):
            weights[row, other] = weights[other, row] = TOLD * similar
    lent = np.where(decided, 1.0, doubt)
    support = weights[:, decided] @ lent[decided]
    order, left = [], [row for row in range(n) if not decided[row] and doubt[row] >= DOUBTFUL]
    helped = np.array(left + np.flatnonzero(decided).tolist(), dtype=np.int64)
    while left:
        gains = {x: (np.tanh(support + weights[:, x] * lent[x]) - np.tanh(support))[helped].sum() for x in left}
        best = max(left, key=lambda x: (round(gains[x], 12), -x))
        order.append(best)
        left.remove(best)
        support = support + weights[:, best] * lent[best]
    return [*order, *sorted((x for x in range(n) if not decided[x] and doubt[x] < DOUBTFUL), key=lambda x: -doubt[x])]


@pytest.mark.parametrize("seed", range(20))
def test_worth_is_what_the_slow_greedy_takes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    labels, decided = some_labels(rng, n), rng.random(n) < 0.2
    near = neighbours_among(rng, n, 4)
    order = order_rows("worth", labels, decided, near)
    order = order[~decided[order]]
    assert order.tolist() == most_worth(doubts(labels), decided, *near)


@pytest.mark.parametrize("order", ORDERS)
def test_everyone_comes_once(order, rng):
    labels, decided = some_labels(rng, 50), np.arange(50) < 10
    for near in (None, neighbours_among(rng, 50, 5)):
        rows = order_rows(order, labels, decided, near, seed=3)
        assert sorted(rows.tolist()) == list(range(50))
        assert rows.tolist() == order_rows(order, labels, decided, near, seed=3).tolist()


def test_doubtful_and_suspicious_first(rng):
    labels, nobody = some_labels(rng, 50), np.zeros(50, bool)
    assert (np.diff(labels.label_score[order_rows("suspicion", labels, nobody)]) >= 0).all()
    assert (np.diff(doubts(labels)[order_rows("doubt", labels, nobody)]) <= 0).all()
    assert order_rows("row", labels, nobody).tolist() == list(range(50))
    one, other = (order_rows("random", labels, nobody, seed=seed).tolist() for seed in (0, 1))
    assert one != other


def test_an_order_there_is_not(rng):
    with pytest.raises(InputError, match="did you mean 'worth'"):
        order_rows("wort", some_labels(rng, 3), np.zeros(3, bool))
