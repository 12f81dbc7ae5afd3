"""The epochs of a whole training: looks at the test split, metrics, checkpoints."""

import time
from collections.abc import Mapping
from pathlib import Path

from prune4rel.progress import Advance
from prune4rel.storage import to_json, write_whole
from prune4rel.training.evaluate import accuracy
from prune4rel.training.saver import Saver
from prune4rel.training.track import Trackers
from prune4rel.training.trainer import Trainer

METRICS, SPEED = "metrics.jsonl", "speed.jsonl"
LOOKS = 20
"""How often a training looks at the test split, unless told."""


class Epochs:
    """Runs what is left of a training.

    Parameters
    ----------
    trainer
        What to train.
    home
        Where `metrics.jsonl` goes, which is the same whether the training was interrupted or not, and `speed.jsonl`,
        which tells how fast it was.
    saver
        Saves the training on the way.
    trackers
        Told the same numbers.
    look_every
        Epochs between looks at the test split.

    Attributes
    ----------
    history
        The numbers of every epoch.
    """

    def __init__(
        self, trainer: Trainer, home: Path, saver: Saver, trackers: Trackers, look_every: int | None = None
    ) -> None:
        self.trainer, self.home, self.saver, self.trackers = trainer, home, saver, trackers
        self.training = trainer.training
        self.total = trainer.plan.hyperparameters.epochs
        self.look_every = look_every or max(1, self.total // LOOKS)
        self.history: list[dict[str, float]] = []
        self.chief = self.training.learner.ranks.rank == 0

    def run(self) -> None:
        """Run all epochs that are left."""
        listener = self.trainer.progress
        self.history = list(self.saver.resume(listener).get("history", ()))
        if self.training.steps:
            listener.say(f"going on in epoch {min(self.training.epoch + 1, self.total)} of {self.total}")
        if self.chief:
            _write_lines(self.home / METRICS, self.history)
        with listener.task("training", total=self.total - self.training.epoch) as advance:
            while self.training.epoch < self.total:
                self._run_one(advance)
        self._save(now=True)

    def _run_one(self, advance: Advance) -> None:
        begin = time.perf_counter()
        seen = 0

        def after_step(count: int, share: float) -> None:
            nonlocal seen
            seen += count
            advance(share)
            self._save()

        numbers = self.training.run_epoch(after_step)
        speed = {"seconds": time.perf_counter() - begin, "images_per_second": seen / (time.perf_counter() - begin)}
        numbers |= self._look()
        self.history.append(numbers)
        if self.chief:
            epoch = int(numbers["epoch"])
            _append_line(self.home / METRICS, numbers)
            _append_line(self.home / SPEED, {"epoch": epoch, **speed})
            self.trackers.log({**numbers, "images_per_second": speed["images_per_second"]}, epoch)
            self.trainer.progress.status(_in_words(numbers, self.total, speed["images_per_second"]))
        self._save()

    def _look(self) -> dict[str, float]:
        """Look at the test split, if it is time and there is one."""
        test = self.trainer.dataset.test
        last = self.training.epoch == self.total
        if test is None or not (last or self.training.epoch % self.look_every == 0):
            return {}
        found = accuracy(self.trainer.ask(test).logits, test.labels if test.clean_labels is None else test.clean_labels)
        return {} if found is None else {"test_accuracy": found}

    def _save(self, *, now: bool = False) -> None:
        self.saver.save({"history": self.history}, now=now)


def _in_words(numbers: Mapping[str, float], epochs: int, rate: float) -> str:
    words = [f"epoch {int(numbers['epoch']) + 1}/{epochs}", f"loss {numbers['loss']:.3f}"]
    if "train_accuracy" in numbers:
        words.append(f"agrees with {numbers['train_accuracy']:.1%} of given labels")
    if "test_accuracy" in numbers:
        words.append(f"test accuracy {numbers['test_accuracy']:.2%}")
    return ", ".join([*words, f"{rate:,.0f} examples/s"])


def _write_lines(path: Path, lines: list[dict[str, float]]) -> None:
    text = "".join(to_json(line) + "\n" for line in lines)
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"), force=True)


def _append_line(path: Path, line: Mapping[str, float]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(to_json(line) + "\n")
