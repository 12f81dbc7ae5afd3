"""The whole state of a training on disk, so that it can be killed at any moment: saved, and taken up again."""

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from prune4rel.atomic import make_folder, remove_dead
from prune4rel.errors import InputError
from prune4rel.inference.model import write_tensors
from prune4rel.progress import Progress
from prune4rel.reading import read_json, reading
from prune4rel.storage import to_json, write_whole
from prune4rel.training.loop import Training

TENSORS, FACTS = "state.safetensors", "position.json"
MOST_STATES = 2


class Checkpoints:
    """The last states of a training, newest first to be found; each is a folder that is whole or absent.

    Parameters
    ----------
    folder
        Where they lie; made when the first is saved.
    identity
        What a state has to agree with to be gone on from: options, data, seed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     states = Checkpoints(Path(name) / "checkpoints", {"seed": 0})
    ...     states.save(1, {"weight": torch.ones(2)}, {"epoch": 3})
    ...     tensors, facts = states.newest(Progress(), torch.device("cpu"))
    >>> tensors["weight"], facts["epoch"]
    (tensor([1., 1.]), 3)
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder, self.identity = folder, json.loads(to_json(dict(identity)))

    def save(self, number: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Save a state under a number larger than those before, and drop all but the last two."""
        make_folder(self.folder)

        def write(part: Path) -> None:
            part.mkdir()
            write_tensors(part / TENSORS, tensors)
            state = to_json({"identity": self.identity, **facts})
            digest = _digest(part / TENSORS, state)
            (part / FACTS).write_text(f'{{"sha256": "{digest}", "state": {state}}}\n', encoding="utf-8")

        write_whole(self.folder / f"{number:012d}", write, force=True)
        for old in self._numbered()[MOST_STATES:]:
            shutil.rmtree(old, ignore_errors=True)

    def newest(self, progress: Progress, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the newest state that can be read, or None; one that cannot is named and passed over."""
        remove_dead(self.folder, held=True)
        found = self._numbered()
        for place, folder in enumerate(found, start=1):
            try:
                tensors, facts = _read(folder, device)
            except InputError as error:
                instead = "going back to the one before" if place < len(found) else "beginning anew"
                progress.say(f"{error}; {instead}")
                continue
            self._compare(folder.parent.parent, facts["identity"])
            return tensors, facts
        return None

    def clear(self) -> None:
        """Remove them: the training is over."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def check_same(self, path: Path) -> None:
        """Refuse to go on with a training whose identity, saved as JSON, is another."""
        try:
            before = read_json(path)
        except InputError as error:
            raise InputError(f"{error}; begin anew with --restart (restart=True)") from None
        if not isinstance(before, dict):
            raise InputError(f"{path}: cannot be read; begin anew with --restart (restart=True)")
        self._compare(path.parent, before)

    def _numbered(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if path.name.isdigit()), reverse=True)

    def _compare(self, folder: Path, identity: Mapping[str, Any]) -> None:
        saved, wanted = _flat(identity), _flat(self.identity)
        for name in {**wanted, **saved}:
            before, now = saved.get(name), wanted.get(name)
            if before != now:
                raise InputError(
                    f"{folder}: the training there was begun with {name} = {_short(before)}, not {_short(now)}; go on "
                    "with the same, choose another folder, or begin anew with --restart (restart=True)",
                    name,
                )


def _read(folder: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any]]:
    facts = read_json(folder / FACTS)
    with reading(folder, "state of a training"):
        if _digest(folder / TENSORS, to_json(facts["state"])) != facts["sha256"]:
            raise ValueError("its contents changed since it was written")
        return load_file(folder / TENSORS, device=str(device)), facts["state"]
    raise AssertionError


def _digest(path: Path, text: str) -> str:
    with reading(path, "file"), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        digest.update(text.encode())
        return digest.hexdigest()
    raise AssertionError


def _flat(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Name values inside values by their path: ``training.epochs``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{path}{name}.") if isinstance(value, Mapping) else {f"{path}{name}": value}
    return found


def _short(value: object) -> str:
    text = to_json(value)
    return text if len(text) <= 80 else text[:77] + "..."


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
