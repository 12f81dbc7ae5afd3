import numpy as np
import pytest
import torch
from tests.training.small import digits, trainer_of

from prune4rel.learners.learner import Pass, Stream
from prune4rel.loading.schedule import Ranks
from prune4rel.training.loop import Feed

SUBSET = np.random.default_rng(0).permutation(80)[:50]


class OneOf(Ranks):
    def __init__(self, rank, world):
        self.rank, self.world = rank, world


def feed(seed=0, batch=8, ranks=None):
    trainer = trainer_of()
    return Feed(trainer.loader, SUBSET, trainer.views, batch, seed, ranks or Ranks())


def draw(counts, generator):
    return (torch.rand(sum(counts), generator=generator),)


def one_pass(*rows, views=("weak", "strong"), **options):
    return Pass(0, tuple(Stream(np.asarray(some), views) for some in rows), lambda _s, _d: None, **options)


def flat(steps):
    """All tensors of all steps."""
    return [
        [tensor for e in streams for tensor in (e.rows, *e.views, e.labels)] + list(drawn) for streams, drawn in steps
    ]


def equal(first, second):
    return len(first) == len(second) and all(
        len(a) == len(b) and all(map(torch.equal, a, b)) for a, b in zip(first, second, strict=True)
    )


def test_every_example_of_the_subset_comes_once_with_its_row_and_label():
    some = feed()
    one = one_pass(np.arange(50), views=("plain",))
    steps = list(some.steps(one, epoch=0, number=0))
    assert len(steps) == some.steps_of(one) == 6
    rows = torch.cat([streams[0].rows for streams, _ in steps])
    assert len(set(rows.tolist())) == 48
    plain, train = trainer_of().views["plain"], digits().train
    for streams, drawn in steps:
        (examples,) = streams
        at = SUBSET[examples.rows.numpy()]
        images = torch.from_numpy(train.images[at]).permute(0, 3, 1, 2)
        assert torch.equal(examples.labels, torch.from_numpy(train.labels[at]))
        assert torch.equal(examples.views[0], plain(images, torch.Generator()))
        assert (examples.batch, drawn) == (8, ())


@pytest.mark.parametrize("begin", [0, 1, 3, 5, 6])
def test_beginning_anywhere_gives_the_same_batches(begin):
    one = one_pass(np.arange(50), np.arange(10, 23), draw=draw)
    whole = flat(feed().steps(one, epoch=3, number=1))
    assert equal(flat(feed().steps(one, epoch=3, number=1, begin=begin)), whole[begin:])


@pytest.mark.parametrize("change", [{"seed": 1}, {"epoch": 1}, {"number": 1}])
def test_seed_epoch_and_pass_decide(change):
    one = one_pass(np.arange(50), draw=draw)
    place = {"epoch": 0, "number": 0}
    usual = flat(feed().steps(one, **place))
    other = flat(feed(change.pop("seed", 0)).steps(one, **(place | change)))
    assert not any(
        torch.equal(a, b) for mine, its in zip(usual, other, strict=True) for a, b in zip(mine, its, strict=True)
    )


def test_a_shorter_second_stream_begins_anew_in_another_order():
    one = one_pass(np.arange(50), np.arange(16), views=("plain",))
    rows = [streams[1].rows for streams, _ in feed().steps(one, 0, 0)]
    rounds = [torch.cat(rows[k : k + 2]).tolist() for k in (0, 2, 4)]
    assert all(sorted(each) == list(range(16)) for each in rounds)
    assert rounds[0] != rounds[1] != rounds[2]


def test_streams_smaller_than_a_batch_come_whole():
    one = one_pass(np.arange(3), np.arange(5), views=("plain",), draw=draw)
    ((streams, drawn),) = feed().steps(one, 0, 0)
    assert [(len(e.rows), e.batch) for e in streams] == [(3, 3), (5, 5)]
    assert drawn[0].shape == (8,)


def test_ranks_share_a_batch_and_all_get_what_is_mixed():
    both = [feed(ranks=OneOf(rank, 2)) for rank in range(2)]
    alone = feed()
    one = one_pass(np.arange(50), draw=draw)
    whole = flat(alone.steps(one, 0, 0))
    parts = [flat(each.steps(one, 0, 0)) for each in both]
    for step, (first, second) in zip(whole, zip(*parts, strict=True), strict=True):
        *inputs, drawn = step
        assert all(torch.equal(torch.cat([a, b]), c) for a, b, c in zip(first, second, inputs, strict=False))
        assert torch.equal(first[-1], drawn)
    mixed = one_pass(np.arange(50), draw=draw, mixes=True)
    assert equal(flat(both[1].steps(mixed, 0, 0)), whole)
