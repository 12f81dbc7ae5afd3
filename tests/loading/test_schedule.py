import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.pretend_ranks import in_ranks

from prune4rel.errors import InputError
from prune4rel.loading.schedule import CHUNK_BYTES, Ranks, Schedule, check_subset, default_chunk, first_and_last


def test_the_order_is_a_permutation_from_a_generator_seeded_by_seed_and_epoch():
    examples = np.array([5, 3, 8, 1])
    for seed in (0, 7, 2**40):
        for epoch in (0, 1, 9):
            word = np.random.SeedSequence(seed, spawn_key=(epoch,)).generate_state(1, np.uint64)[0]
            generator = torch.Generator().manual_seed(int(word) >> 1)
            expected = examples[torch.randperm(4, generator=generator).numpy()]
            assert Schedule(examples, 2, seed).order(epoch).tolist() == expected.tolist()


@given(st.integers(1, 50), st.integers(1, 60), st.integers(0, 2**62), st.integers(0, 5), st.booleans())
def test_every_example_once_an_epoch(n, batch, seed, epoch, shuffle):
    schedule = Schedule(np.arange(100, 100 + n), batch, seed, shuffle=shuffle)
    batches = schedule.batches(epoch)
    assert len(batches) == len(schedule)
    assert all(len(part) == batch for part in batches[:-1])
    assert sorted(np.concatenate(batches)) == list(range(100, 100 + n))


@given(st.integers(1, 50), st.integers(1, 50))
def test_only_whole_batches_if_asked(n, batch):
    batch = min(n, batch)
    schedule = Schedule(np.arange(n), batch, drop_last=True)
    batches = schedule.batches(0)
    assert len(batches) == len(schedule) == n // batch
    assert all(len(part) == batch for part in batches)
    assert np.array_equal(np.concatenate(batches), schedule.order(0)[: batch * (n // batch)])


def test_epochs_and_seeds_differ():
    def order(seed, epoch):
        return tuple(Schedule(np.arange(30), 4, seed).order(epoch))

    assert len({order(seed, epoch) for seed in range(5) for epoch in range(5)}) == 25
    assert order(1, 1) == order(1, 1)


def test_without_shuffling_the_order_is_the_given_one():
    assert Schedule(np.array([4, 1, 9]), 2, shuffle=False).order(3).tolist() == [4, 1, 9]


def test_global_random_numbers_do_not_matter_and_are_left_alone():
    schedule = Schedule(np.arange(20), 4)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    one = schedule.order(0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert np.array_equal(schedule.order(0), one)


def test_every_chunk_has_random_numbers_of_its_own():
    draws = {
        tuple(Schedule(np.arange(9), 3, seed).generator(epoch, chunk).get_state().tolist())
        for seed in range(3)
        for epoch in range(3)
        for chunk in range(3)
    }
    assert len(draws) == 27


def test_random_numbers_are_drawn_on_the_cpu_whatever_the_default_device():
    with torch.device("meta"):
        schedule = Schedule(np.arange(9), 3)
        generator, order = schedule.generator(0, 0), schedule.order(0)
    assert generator.device.type == "cpu"
    assert order.tolist() == Schedule(np.arange(9), 3).order(0).tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch must be 1 or more, not 0"),
        ({"batch": 1, "chunk": 0}, "chunk must be 1 or more, not 0"),
        ({"batch": 1, "seed": -1}, "seed must be 0 or more, not -1"),
        ({"batch": 6, "drop_last": True}, "batch is 6, but there are only 5 examples, and drop_last leaves nothing"),
    ],
)
def test_impossible_schedules_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Schedule(np.arange(5), **options)


def test_identity_tells_schedules_apart():
    one = Schedule(np.array([1, 2, 3]), 2)
    assert one.identity == Schedule(np.array([1, 2, 3]), 2).identity
    assert one.identity != Schedule(np.array([1, 3, 2]), 2).identity
    assert one.identity != Schedule(np.array([1, 2, 3]), 2, chunk=2).identity


@pytest.mark.parametrize("subset", [[3, 0], np.array([3, 0], dtype=np.int32), torch.tensor([3, 0])])
def test_subsets_of_all_kinds(subset):
    checked = check_subset(subset, 4)
    assert checked.tolist() == [3, 0]
    assert checked.dtype == np.int64


@pytest.mark.parametrize(
    ("subset", "words"),
    [
        ([], "is empty"),
        ([[1]], r"shape \(1, 1\)"),
        ([0.5], "type float64"),
        ([True, False, True, True], "type bool"),
        ([-1], "holds -1, but the split has examples 0 to 3"),
        ([4], "holds 4, but"),
        ([2, 1, 2], "holds 2 more than once"),
    ],
)
def test_other_subsets_are_refused(subset, words):
    with pytest.raises(InputError, match=words):
        check_subset(subset, 4)


def test_the_default_chunk_is_of_bounded_size():
    for batch in (1, 32, 128, 5000):
        for size in (1, 64, 3072, 196_608):
            chunk = default_chunk(batch, size)
            assert chunk == 1 or chunk * batch * size <= CHUNK_BYTES
            assert (chunk + 1) * batch * size > CHUNK_BYTES


@given(st.integers(0, 200), st.integers(1, 9))
def test_parts_cover_everything_once_and_evenly(count, world):
    parts = [range(*first_and_last(count, rank, world)) for rank in range(world)]
    assert [row for part in parts for row in part] == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_alone_everything_is_mine():
    ranks, rows = Ranks(), torch.arange(3.0, requires_grad=True)
    assert (ranks.rank, ranks.world) == (0, 1)
    assert ranks.mine(rows) is rows
    assert ranks.sum(rows) is rows
    assert ranks.once(rows) is rows
    assert not ranks.gather(rows).requires_grad
    gradients = [torch.ones(2)]
    ranks.reduce_(gradients)
    assert gradients[0].tolist() == [1, 1]
    ranks.barrier()


@pytest.mark.parametrize("world", [1, 2, 3])
def test_what_the_tests_pretend_is_what_is_promised(world):
    rows = torch.arange(7.0)

    def work(ranks):
        mine = ranks.mine(rows).clone().requires_grad_()
        (ranks.once(ranks.sum(mine.sum()) ** 2) + (mine**2).sum()).backward()
        return ranks.gather(mine), mine.grad

    results = in_ranks(world, work)
    assert all(torch.equal(whole, rows) for whole, _ in results)
    torch.testing.assert_close(torch.cat([grad for _, grad in results]), 2 * rows.sum() + 2 * rows)
