import numpy as np
import pytest

from prune4rel.judging.duplicates import components, find_duplicates, near_limit, unlike_others
from prune4rel.judging.similar import centre_of, find_similar, unit_rows


def oracle(rows, labels, n, limit):
    """Compare every row with every other; go from group to group by hand. Rows from `n` on are the test split."""
    units = unit_rows(rows, centre_of(rows[:n])).astype(np.float64)
    distance = np.linalg.norm(units[:, None] - units[None], axis=2)
    close = (distance <= limit) | (rows[:, None] == rows[None]).all(axis=2)
    close[n:, n:] = (rows[n:, None] == rows[None, n:]).all(axis=2)  # within the test split: exact copies only
    left, groups = set(range(len(rows))), []
    while left:
        group, todo = set(), [min(left)]
        while todo:
            one = todo.pop()
            if one not in group:
                group.add(one)
                todo += np.flatnonzero(close[one]).tolist()
        left -= group
        if len(group) > 1:
            groups.append(sorted(group))
    told = []
    for number, group in enumerate(groups):
        kind = "exact" if all((rows[one] == rows[group[0]]).all() for one in group) else "near"
        contradicting = len({labels[one] for one in group if labels[one] >= 0}) > 1
        told += [(number, one % n, "train" if one < n else "test", kind, contradicting) for one in group]
    return told


def told(found):
    return list(
        zip(
            found.group.tolist(),
            found.index.tolist(),
            found.split.tolist(),
            found.kind.tolist(),
            found.contradicting.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("test_labels", [None, "known"])
def test_groups_are_those_of_the_oracle(seed, test_labels):
    rng = np.random.default_rng(seed)
    n, m = 50, 12
    rows = rng.normal(size=(n + m, 6)).astype(np.float32)
    for _ in range(12):  # copies, near copies and chains of both
        one, other = rng.integers(0, n, 2)
        rows[one] = rows[other] + rng.choice([0.0, 1e-4]) * rng.normal(size=6)
    for one in rng.integers(n, n + m, 3):
        rows[one] = rows[rng.integers(0, n)] + rng.choice([0.0, 1e-4]) * rng.normal(size=6)
    labels = rng.integers(0, 2, n + m)
    similar = find_similar(unit_rows(rows[:n]), 49)
    found = find_duplicates(
        rows[:n],
        labels[:n],
        similar,
        test_embeddings=rows[n:],
        test_labels=labels[n:] if test_labels else None,
    )
    known = labels if test_labels else np.r_[labels[:n], np.full(m, -1)]
    expected = oracle(rows, known, n, near_limit(similar))
    assert told(found) == expected
    assert len(found) == len({row[0] for row in expected})
    tested = {row[0] for row in expected if row[2] == "test"}
    assert found.in_test.tolist() == sorted({row[1] for row in expected if row[2] == "train" and row[0] in tested})


def test_copies_share_a_number_and_others_have_their_own():
    rows = np.random.default_rng(0).normal(size=(8, 5))
    rows[6] = rows[3] = rows[1]
    rows[7] = rows[0]
    found = find_duplicates(rows, np.zeros(8, dtype=np.int64), find_similar(unit_rows(rows)))
    assert found.groups_of(8).tolist() == [0, 1, 2, 1, 4, 5, 1, 0]
    assert not found.contradicting.any()
    assert found.to_table().column_names == ["group", "index", "split", "kind", "contradicting"]


def test_minus_zero_is_zero():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    assert find_duplicates(rows, np.array([0, 1, 0]), find_similar(unit_rows(rows))).index.tolist() == [0, 1]


def test_without_copies_there_are_no_groups():
    rows = np.eye(5)
    found = find_duplicates(rows, np.arange(5), find_similar(unit_rows(rows)))
    assert len(found) == 0
    assert found.groups_of(5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(10))
def test_components_are_those_of_a_slow_search(seed):
    rng = np.random.default_rng(seed)
    n = 40
    pairs = rng.integers(0, n, (int(rng.integers(0, 50)), 2))
    roots = list(range(n))
    for _ in range(n):
        for a, b in pairs.tolist():
            roots[a] = roots[b] = min(roots[a], roots[b])
    assert components(n, pairs).tolist() == roots


def test_a_long_chain_is_one_component():
    order = np.random.default_rng(0).permutation(3000)
    pairs = np.stack([order[:-1], order[1:]], axis=1)
    assert not components(3000, pairs).any()


def test_who_is_far_from_all_is_told_loneliest_first():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal([9, 0, 0, 0], 0.3, (300, 4)), [[0, 9, 0, 0], [9, 4, 4, 0]]])
    similar = find_similar(unit_rows(rows, np.zeros(4)))
    assert unlike_others(similar)[:2].tolist() == [300, 301]
    assert len(unlike_others(similar)) < 10
    assert unlike_others(find_similar(unit_rows(np.ones((1, 3))))).tolist() == []
