"""Which steps of a run are done, and by which options: what a changed option has to redo."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prune4rel.progress import Progress
from prune4rel.storage import to_json, write_whole

DONE, DEPENDS = "step.json", "depends.json"
STALE = (".part", ".old")
MOST_SHOWN = 60
"""Characters of a value that are shown where it changed."""


@dataclass(frozen=True)
class Step:
    """A piece of work with a folder of its own.

    Parameters
    ----------
    name
        For people: ``"warm-up of sop+, seed 0"``.
    folder
        Where its results lie.
    depends
        Everything that decides its result, as a JSON value.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     step = Step("an example", Path(name) / "example", {"seed": 0})
    ...     perform(step, lambda folder: {"written": folder.name}, Progress())
    ...     print(step.done, step.record()["written"])
    True example
    """

    name: str
    folder: Path
    depends: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """A fingerprint of what it depends on; part of what later steps depend on."""
        return hashlib.sha256(_text(self._plain()).encode()).hexdigest()

    def _plain(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(to_json(dict(self.depends)))
        return plain

    def record(self) -> dict[str, Any] | None:
        """Return what was written when it was done, or None."""
        return _read(self.folder / DONE)

    @property
    def done(self) -> bool:
        """Whether it was done, by the same options."""
        record = self.record()
        return record is not None and record.get("key") == self.key

    def prepare(self, progress: Progress) -> None:
        """Make the folder; throw away what other options left there, and say which option changed."""
        before, now = _read(self.folder / DEPENDS), self._plain()
        if before is not None and _text(before) == _text(now):
            return
        if before is not None:
            progress.say(f"{self.name}: {_difference(before, now)}; doing it again")
        throw_away(self.folder)
        self.folder.mkdir(parents=True)
        text = to_json(now, indent=1) + "\n"
        write_whole(self.folder / DEPENDS, lambda part: part.write_text(text, encoding="utf-8"))

    def carry_out(self, work: Callable[[Path], Mapping[str, Any] | None]) -> None:
        """Do the work in the prepared folder, and mark it as done."""
        resumed = any(each.name != DEPENDS for each in self.folder.iterdir())
        begin = time.perf_counter()
        facts = work(self.folder)
        known = {"key": self.key, "name": self.name, "seconds": time.perf_counter() - begin, "resumed": resumed}
        text = to_json({**known, **(facts or {})}, indent=1) + "\n"
        write_whole(self.folder / DONE, lambda part: part.write_text(text, encoding="utf-8"), force=True)


def perform(step: Step, work: Callable[[Path], Mapping[str, Any] | None], progress: Progress) -> None:
    """Do a step unless it is done."""
    if not step.done:
        step.prepare(progress)
        step.carry_out(work)


def throw_away(path: Path) -> None:
    """Remove a folder so that, whenever this is killed, all of it is there or none."""
    if path.exists():
        aside = path.with_name(f".{path.name}.{os.getpid()}.old")
        path.replace(aside)
        _remove(aside)


def sweep(home: Path) -> None:
    """Remove what killed processes left half written or half removed anywhere in a folder."""
    for place, folders, files in os.walk(home):
        for name in (*folders, *files):
            if name.startswith(".") and name.endswith(STALE):
                _remove(Path(place, name))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> str:
    """Say in words what changed."""
    for name in {**now, **before}:
        old, new = before.get(name), now.get(name)
        if _text(old) == _text(new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            return _difference(old, new, f"{path}{name}.")
        if name == "after":
            return "a step before it changed"
        return f"{path}{name} was {_shown(old)} and is {_shown(new)} now"
    raise AssertionError("only called where something changed")


def _shown(value: object) -> str:
    text = to_json(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
