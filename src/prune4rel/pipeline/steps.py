"""Which steps of a run are done, and by which options: what a changed option has to redo."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prune4rel.progress import Progress
from prune4rel.storage import to_json, write_whole

DONE = "step.json"


@dataclass(frozen=True)
class Step:
    """A piece of work with a folder of its own.

    Parameters
    ----------
    name
        For people: ``"warm-up, sop+, seed 0"``.
    folder
        Where its results lie.
    depends
        Everything that decides its result, as a JSON value.
    """

    name: str
    folder: Path
    depends: Mapping[str, Any]

    @property
    def key(self) -> str:
        """A fingerprint of what it depends on; part of what later steps depend on."""
        return hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode()).hexdigest()

    def _plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(to_json(dict(self.depends)))
        return plain

    def record(self) -> dict[str, Any] | None:
        """Return what was written when it was done, or None."""
        try:
            found = json.loads((self.folder / DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def done(self) -> bool:
        """Whether it was done, by the same options."""
        record = self.record()
        return record is not None and record.get("key") == self.key

    def prepare(self, progress: Progress) -> None:
        """Make the folder; throw away what other options left there, and say which option changed."""
        mark = self.folder / "depends.json"
        try:
            before = json.loads(mark.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None
        now = self._plain()
        if before is not None and before != now:
            progress.say(f"{self.name}: {_difference(before, now)}; doing it again")
        if before != now and self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if before != now:
            text = to_json(now, indent=1)
            write_whole(mark, lambda part: part.write_text(text, encoding="utf-8"), force=True)

    def finish(self, seconds: float, **facts: Any) -> None:
        """Mark it as done."""
        text = to_json({"key": self.key, "name": self.name, "seconds": seconds, **facts}, indent=1) + "\n"
        write_whole(self.folder / DONE, lambda part: part.write_text(text, encoding="utf-8"), force=True)


def perform(step: Step, work: Callable[[Path], Mapping[str, Any] | None], progress: Progress) -> None:
    """Do a step unless it is done."""
    if step.done:
        return
    step.prepare(progress)
    begin = time.perf_counter()
    facts = work(step.folder)
    step.finish(time.perf_counter() - begin, **(facts or {}))


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> str:
    """Say in words what changed."""
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            return _difference(old, new, f"{path}{name}.")
        if name == "after":
            return "the step before it was done again"
        return f"{path}{name} was {to_json(old)} and is {to_json(new)} now"
    return "something changed"
