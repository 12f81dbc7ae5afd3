"""When a training is saved, and how it is taken up again."""

import time
from collections.abc import Mapping
from typing import Any

from prune4rel.progress import Progress
from prune4rel.training.checkpoint import Checkpoints
from prune4rel.training.loop import Training


class Saver:
    """Saves a training every so often; only the first rank does, and only what is worth it.

    Parameters
    ----------
    training
        What to save.
    states
        Where to; None for nowhere.
    every
        Seconds between two saves; 0 for after every step.
    """

    def __init__(self, training: Training, states: Checkpoints | None, every: float) -> None:
        self.training, self.states, self.every = training, states, every
        self._last = time.monotonic()

    def resume(self, progress: Progress) -> dict[str, Any]:
        """Take up the newest state that can be read; return what was saved beside it, {} where there is none."""
        found = None if self.states is None else self.states.newest(progress, self.training.feed.device)
        if found is not None:
            self.training.restore(*found)
        # also waits: a rank that went ahead could replace what another is still reading
        self.training.learner.ranks.check_alike(str(self.training.steps), "checkpoint")
        return {} if found is None else found[1]

    def save(self, beside: Mapping[str, Any] | None = None, *, now: bool = False) -> None:
        """Save if it is time, with a JSON value beside it."""
        training = self.training
        due = now or time.monotonic() - self._last >= self.every
        if self.states is None or not due or training.learner.ranks.rank != 0 or not training.is_sound():
            return
        tensors, facts = training.state()
        number = training.steps * 2 + (training.step == 0)  # after the last step of an epoch, and after the epoch
        self.states.save(number, tensors, {**facts, **(beside or {})})
        self._last = time.monotonic()
