"""Several ranks as threads of one process."""

import threading

import torch

from prune4rel.loading.schedule import Ranks, first_and_last


class Exchange:
    """Where threads leave something for each other."""

    def __init__(self, world):
        self.world = world
        self.left = [None] * world
        self.barrier = threading.Barrier(world, timeout=30)

    def swap(self, rank, value):
        self.left[rank] = value
        self.barrier.wait()
        everybody = list(self.left)
        self.barrier.wait()
        return everybody


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, ranks):
        ctx.ranks = ranks
        return sum(ranks.swap(values.detach().clone()))

    @staticmethod
    def backward(ctx, gradient):
        return sum(ctx.ranks.swap(gradient.clone())), None


class PretendRanks(Ranks):
    def __init__(self, rank, exchange):
        self.rank, self.world, self.exchange = rank, exchange.world, exchange

    def swap(self, value):
        return self.exchange.swap(self.rank, value)

    def sum(self, values):
        return _Sum.apply(values, self)

    def once(self, value):
        return value / self.world

    def gather(self, rows):
        return torch.cat(self.swap(rows.detach().clone()))

    def mine(self, rows):
        first, last = first_and_last(len(rows), self.rank, self.world)
        return rows[first:last]

    def reduce_(self, gradients):
        for place, total in enumerate(zip(*self.swap([g.clone() for g in gradients]), strict=True)):
            gradients[place].copy_(sum(total))


def in_ranks(world, work):
    """Run ``work(ranks)`` in as many threads as there are ranks, and return what each gives."""
    exchange = Exchange(world)
    results, errors = [None] * world, []

    def run(rank):
        try:
            results[rank] = work(PretendRanks(rank, exchange))
        except Exception as error:  # noqa: BLE001 - raised again below, in the test's own thread
            errors.append(error)
            exchange.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    return results
