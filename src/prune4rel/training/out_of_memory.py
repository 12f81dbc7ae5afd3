"""What to say when memory runs out: which batch would fit."""

from collections.abc import Callable

import torch

from prune4rel.errors import InputError
from prune4rel.training.trainer import Trainer

LEAST = 2
"""Examples of the smallest batch that is tried: with fewer, layers that normalise over a batch have nothing to do."""


def explaining_memory(trainer: Trainer, work: Callable[[], None]) -> None:
    """Do some training; where memory runs out, say which batch would fit."""
    try:
        work()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    else:
        return
    # only here, where nothing holds on to the tensors of the failed step any more
    batch, world = trainer.training.feed.batch, trainer.training.learner.ranks.world
    if world > 1:
        raise InputError(
            f"a batch of {batch} over {world} processes does not fit into the memory of {trainer.device}; pass a "
            f"smaller one, such as batch={batch // 2} (--set batch={batch // 2}), or start more processes",
            "batch",
        )
    fits = largest_batch_that_fits(trainer)
    advice = f"the largest batch that fits is about {fits}: pass batch={fits} (--set batch={fits})"
    if fits is None:
        advice = f"not even {LEAST} examples fit; choose a smaller network or another device"
    raise InputError(f"a batch of {batch} does not fit into the memory of {trainer.device}; {advice}", "batch")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def largest_batch_that_fits(trainer: Trainer) -> int | None:
    """Find the largest batch, below the current one, of which a step fits the memory; None if not even two do."""
    fits, fails = LEAST - 1, trainer.training.feed.batch
    trial = max(LEAST, fails // 2)
    while fits < trial < fails:
        if _fits(trainer, trial):
            fits = trial
        else:
            fails = trial
        trial = (fits + fails) // 2 if fits >= LEAST else max(LEAST, fails // 2)
    return fits if fits >= LEAST else None


def _fits(trainer: Trainer, batch: int) -> bool:
    training = trainer.training
    training.feed.batch = batch
    training.stepper.forget()
    if trainer.device.type == "cuda":
        torch.cuda.empty_cache()
    try:
        one = training.learner.passes(training.epoch)[0]
        streams, drawn = next(training.feed.steps(one, training.epoch, 0))
        training.stepper(one, streams, drawn)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    return True
