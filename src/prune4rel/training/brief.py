"""Training for some epochs without more ado: no looks at the test split, nothing left behind but the learner."""

from pathlib import Path
from typing import Any

from prune4rel.training.checkpoint import Checkpoints
from prune4rel.training.hyperparameters import identity_of
from prune4rel.training.out_of_memory import explaining_memory
from prune4rel.training.saver import Saver
from prune4rel.training.trainer import Trainer


def train_briefly(
    trainer: Trainer, epochs: int, *, title: str, folder: Path | None, save_every: float, **identity: Any
) -> None:
    """Run epochs, going on from a checkpoint in the folder, if any.

    Parameters
    ----------
    trainer
        What to train.
    epochs
        Up to which epoch.
    title
        What to call it.
    folder
        Where checkpoints go; None for nowhere.
    save_every
        Seconds between them.
    **identity
        What else has to be the same for a checkpoint to be gone on from.
    """
    training, listener = trainer.training, trainer.progress
    states = None
    if folder is not None:
        known = identity_of(trainer.plan, trainer.dataset, trainer.subset) | {
            "title": title,
            "until": epochs,
            **identity,
        }
        states = Checkpoints(folder, known)
    saver = Saver(training, states, save_every)
    saver.resume(listener)
    for note in trainer.notes:
        listener.say(note)

    def work() -> None:
        with listener.task(title, total=max(0, epochs - training.epoch)) as advance:

            def after_step(_count: int, share: float) -> None:
                advance(share)
                saver.save()

            while training.epoch < epochs:
                numbers = training.run_epoch(after_step)
                listener.status(f"{title}, epoch {training.epoch}/{epochs}, loss {numbers['loss']:.3f}")
                saver.save(now=training.epoch == epochs)

    explaining_memory(trainer, work)
