import numpy as np
import pytest

from prune4rel.errors import InputError
from prune4rel.judging.crowd import consensus, consensus_of_table


def crowd(seed, n=400, C=4, skills=(0.9, 0.85, 0.35, 0.3, 0.3), share=0.7):
    """Votes of annotators who are right so often; the bad ones take the next class by preference."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    votes = np.full((n, len(skills)), -1)
    for column, skill in enumerate(skills):
        wrong = rng.random(n) >= skill
        votes[:, column] = np.where(wrong, (truth + 1) % C, truth)
    votes[rng.random(votes.shape) >= share] = -1
    votes[0, 0] = truth[0]
    return truth, votes


def dawid_skene(votes, C, rounds):
    """Expectation and maximisation, one vote at a time, with the same priors."""
    n, A = votes.shape
    cast = [(i, a, votes[i, a]) for i in range(n) for a in range(A) if votes[i, a] >= 0]
    counts = np.zeros((n, C))
    for i, _, label in cast:
        counts[i, label] += 1
    frequency = counts.sum(axis=0) / counts.sum()
    shares = np.array([(row + 0.1 * frequency) / (row.sum() + 0.1) for row in counts])
    for _ in range(rounds):
        pooled = np.full((C, C), 0.1 / C) + 0.1 * np.eye(C)
        for i, _, label in cast:
            pooled[:, label] += shares[i]
        pooled /= pooled.sum(axis=1, keepdims=True)
        each = np.stack([10 * pooled] * A)
        for i, a, label in cast:
            each[a, :, label] += shares[i]
        each /= each.sum(axis=2, keepdims=True)
        prior = shares.mean(axis=0)
        new = np.tile(prior, (n, 1))
        for i, a, label in cast:
            new[i] *= each[a, :, label]
        shares = new / new.sum(axis=1, keepdims=True)
    return shares


@pytest.mark.parametrize("seed", range(3))
def test_dawid_skene_is_that_of_the_oracle(seed):
    _, votes = crowd(seed, n=60)
    found = consensus(votes, 4, way="dawid-skene")
    np.testing.assert_allclose(found.probabilities, dawid_skene(votes, 4, 50), atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_counting_takes_the_most_voted(seed):
    _, votes = crowd(seed)
    found = consensus(votes, 4, way="votes")
    for row, label in zip(votes, found.labels, strict=True):
        counts = np.bincount(row[row >= 0], minlength=4)
        assert counts[label] == counts.max()


@pytest.mark.parametrize("seed", range(3))
def test_bad_annotators_are_seen_through(seed):
    truth, votes = crowd(seed)
    counted, weighed, chosen = (consensus(votes, 4, way=way) for way in ("votes", "dawid-skene", "auto"))
    assert (weighed.labels == truth).mean() > (counted.labels == truth).mean() + 0.1
    assert chosen.way == "dawid-skene"
    assert set(np.argsort(weighed.quality)[-2:]) == {0, 1}
    np.testing.assert_allclose(weighed.quality, (0.9, 0.85, 0.35, 0.3, 0.3), atol=0.12)
    np.testing.assert_allclose(weighed.confusion.sum(axis=2), 1)
    np.testing.assert_allclose(weighed.probabilities.sum(axis=1), 1)


def test_agreement_and_votes_are_counted():
    found = consensus([[0, 0, 1], [1, -1, -1], [-1, -1, -1]], 2, way="votes")
    np.testing.assert_allclose(found.agreement, [2 / 3, 1, 0])
    assert found.votes.tolist() == [3, 1, 0]
    assert found.cast.tolist() == [2, 1, 1]


def test_a_table_of_votes_is_the_same():
    _, votes = crowd(0)
    example, annotator = np.nonzero(votes >= 0)
    table = consensus_of_table(example, annotator, votes[example, annotator], n=len(votes), n_annotators=5, n_classes=4)
    np.testing.assert_array_equal(table.probabilities, consensus(votes, 4).probabilities)


@pytest.mark.parametrize(
    ("votes", "way", "words"),
    [
        ([0, 1], "auto", r"shape \(2,\)"),
        ([[0.5]], "auto", "type float64"),
        ([[0, 2]], "auto", "row 0 has 2 in column 1; expected 0 to 1"),
        ([[0, -2]], "auto", "row 0 has -2 in column 1"),
        ([[-1, -1]], "auto", "nobody voted"),
        ([[0, 1]], "vote", "did you mean 'votes'"),
    ],
)
def test_what_is_no_vote_is_refused(votes, way, words):
    with pytest.raises(InputError, match=words):
        consensus(votes, 2, way=way)


def test_rows_of_a_table_are_checked():
    with pytest.raises(InputError, match="row 1 has annotator 5"):
        consensus_of_table([0, 0], [0, 5], [0, 0], n=1, n_annotators=2, n_classes=2)
    with pytest.raises(InputError, match="as many rows"):
        consensus_of_table([0], [0, 1], [0, 0], n=1, n_annotators=2, n_classes=2)
    with pytest.raises(InputError, match="too many for dawid-skene"):
        consensus_of_table([0], [0], [0], n=1, n_annotators=100, n_classes=1000, way="dawid-skene")
