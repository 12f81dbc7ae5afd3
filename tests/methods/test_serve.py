"""Starting from earlier picks, and picking in parts: what every method owes whoever asks for them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prune4rel as p4r
from prune4rel.engines.local import LocalEngine
from prune4rel.methods import get
from prune4rel.methods.method import Request
from prune4rel.methods.serve import deal, pick_again, run_method, share_out

N, CLASSES = 90, 3
SHARING = [name for name in p4r.list_methods() if get(name).in_parts == "shares"]
LEFT_TO_US = [name for name in p4r.list_methods() if not get(name).by_row and "parts" not in get(name).asks]


def signals(labels=None, n=N):
    rng = np.random.default_rng(8)
    labels = rng.permutation(n) % CLASSES if labels is None else labels
    embeddings = rng.normal(size=(n, 6)) + rng.normal(size=(CLASSES, 6))[labels]
    vectors = {name: rng.random(n) for name in ("losses", "aum", "scores", "forgetting")}
    return p4r.Signals(
        labels=labels, embeddings=embeddings, probabilities=rng.dirichlet(np.ones(CLASSES) / 2, n), **vectors
    )


def by_turns(labels, size, start):
    """How many of each class, one at a time, the class with the fewest first."""
    have, taken = np.bincount(labels, minlength=CLASSES), np.bincount(labels[start], minlength=CLASSES)
    for _ in range(size - len(start)):
        taken[min(np.flatnonzero(taken < have), key=lambda label: (taken[label], label))] += 1
    return taken.tolist()


@pytest.fixture(params=p4r.list_methods())
def method(request):
    return request.param


@pytest.mark.parametrize("balanced", [False, True])
def test_earlier_picks_lead_count_and_come_once(method, balanced):
    given = signals()
    start = [80, 3, 41, 5, *np.flatnonzero(given.labels == 1)[:14].tolist()]
    start = list(dict.fromkeys(start))
    for size in (len(start), len(start) + 1, 40, N):
        chosen = p4r.select(method, given, size=size, balanced=balanced, initial=start)
        assert chosen.indices[: len(start)].tolist() == start
        assert len(set(chosen.indices.tolist())) == len(chosen) == len(chosen.gains) == size
        assert chosen.weights is None or len(chosen.weights) == size
        if balanced:
            assert chosen.stats["class_counts"] == by_turns(given.labels, size, start)


ONE_BY_ONE = {"glister": {"batch": 1}, "gradmatch": {"batch": 1}}


@pytest.mark.parametrize("balanced", [False, True])
def test_going_on_from_picks_of_its_own_changes_nothing(method, balanced):
    asked = {"size": 30, "balanced": balanced} | ONE_BY_ONE.get(method, {})
    whole = p4r.select(method, signals(), **asked)
    again = p4r.select(method, signals(), **asked, initial=whole.indices[:13])
    if method == "gradmatch":  # it solves for the first thirteen at once, not thirteen times
        assert set(again.indices.tolist()) == set(whole.indices.tolist())
        np.testing.assert_allclose(np.sort(again.weights), np.sort(whole.weights), atol=1e-5)
    else:
        assert again.indices.tolist() == whole.indices.tolist()


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("size", [1, 7, 31, N])
def test_parts_pick_the_right_number_once_and_keep_the_balance(method, size, balanced):
    given = signals(np.r_[np.zeros(10, int), np.ones(33, int), np.full(47, 2)])
    for start in ([], [50, 2][:size]):
        chosen = p4r.select(method, given, size=size, balanced=balanced, partitions=4, initial=start)
        assert chosen.indices[: len(start)].tolist() == start
        assert len(set(chosen.indices.tolist())) == len(chosen) == len(chosen.gains) == size
        assert chosen.weights is None or len(chosen.weights) == size
        if balanced:
            assert chosen.stats["class_counts"] == by_turns(given.labels, size, np.array(start, dtype=int))
        if not get(method).by_row:
            assert chosen.approximate
            assert any("parts" in note for note in chosen.notes)
        again = p4r.select(method, given, **chosen.options)
        assert again.indices.tolist() == chosen.indices.tolist()


@pytest.mark.parametrize("name", LEFT_TO_US)
@pytest.mark.parametrize("balanced", [False, True])
def test_one_part_is_the_whole(name, balanced):
    engine, entry = LocalEngine(signals()), get(name)
    request = Request(size=24, balanced=balanced, initial=np.array([9, 1]))
    whole = run_method(entry, engine, request, {})
    if entry.in_parts == "shares":
        one = share_out(entry, engine, request, {}, 1)
        np.testing.assert_array_equal(one.scores, whole.scores)
        assert sorted(one.indices.tolist()) == sorted(whole.indices.tolist())
        if whole.weights is not None:
            by_example = [dict(zip(found.indices.tolist(), found.weights, strict=True)) for found in (one, whole)]
            assert by_example[0] == by_example[1]
        assert one.options == whole.options
    else:
        proposed = run_method(entry, engine, replace(request, initial=None), {}).indices
        among = np.union1d(proposed, request.initial)
        again = run_method(
            entry, engine.only(among), replace(request, initial=np.searchsorted(among, request.initial)), {}
        )
        assert pick_again(entry, engine, request, {}, 1).indices.tolist() == among[again.indices].tolist()


@pytest.mark.parametrize("name", SHARING)
def test_every_part_gives_what_it_would_give_alone(name):
    given, request = signals(), Request(size=20, seed=3)
    engine, entry = LocalEngine(given), get(name)
    part_of, sizes = deal(np.zeros(N, dtype=int), request, 3)
    expected = set()
    for part in range(3):
        members = np.flatnonzero(part_of == part)
        alone = p4r.select(name, given.only(members), size=int(sizes[part]), seed=3)
        expected |= set(members[alone.indices].tolist())
    assert set(share_out(entry, engine, request, {}, 3).indices.tolist()) == expected


def test_what_craig_stands_for_in_parts_is_everybody():
    assert p4r.select("craig", signals(), size=12, partitions=3).weights.sum() == N


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 6), st.integers(0, 5), st.booleans(), st.data()
)
def test_dealing_gives_every_part_the_turns_that_add_up(labels, parts, seed, alone, data):
    groups = np.zeros(len(labels), dtype=np.int64) if alone else np.array(labels)
    size = data.draw(st.integers(1, len(labels)))
    start = np.array(data.draw(st.permutations(range(len(labels))))[: data.draw(st.integers(0, size))], dtype=np.int64)
    part_of, sizes = deal(groups, Request(size=size, seed=seed, initial=start), parts)
    assert sizes.sum() == size
    assert (sizes > 0).all()
    assert len(sizes) <= parts

    def turns(members, wanted):
        have = {label: sum(groups[x] == label for x in members) for label in set(groups.tolist())}
        taken = {label: sum(groups[x] == label for x in start if x in members) for label in have}
        for _ in range(wanted - sum(taken.values())):
            taken[min((g for g in have if taken[g] < have[g]), key=lambda g: (taken[g], g))] += 1
        return taken

    found = [turns(set(np.flatnonzero(part_of == p).tolist()), int(wanted)) for p, wanted in enumerate(sizes)]
    together = turns(set(range(len(labels))), size)
    assert {label: sum(some.get(label, 0) for some in found) for label in together} == together


def test_examples_named_by_number_keep_their_meaning():
    given = signals()
    known = np.ones(N, dtype=bool)
    known[[4, 30]] = False
    rows = np.flatnonzero(known)
    trusted = np.array([3, 8, 50, 71])
    with_junk = p4r.select("glister", replace(given, known=known), size=12, validation=trusted)
    without = p4r.select("glister", given.only(rows), size=12, validation=np.searchsorted(rows, trusted))
    assert with_junk.indices.tolist() == rows[without.indices].tolist()
    with pytest.raises(p4r.InputError, match="validation: holds example 30, which could not be read"):
        p4r.select("glister", replace(given, known=known), size=12, validation=[30])
    with pytest.raises(p4r.InputError, match="validation names examples, which partitions deal apart"):
        p4r.select("glister", given, size=12, validation=trusted, partitions=2)
