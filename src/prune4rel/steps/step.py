"""Steps of a run: which are done, and by which options, so that a changed option redoes what depends on it alone."""

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from prune4rel.atomic import make_folder, put_aside, remove
from prune4rel.contents import Content, as_plain, contents_of, damage_of, stamped
from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.reading import read_json, read_record, read_sealed, seal
from prune4rel.steps.data import identify, identify_truth

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.steps import StepOptions
    from prune4rel.training import TrainingPlan

DONE, DEPENDS, USED = "step.json", "depends.json", "used"
STALE = (".part", ".old")
SIGNALS = "signals"
MOST_SHOWN = 60
"""Characters of a value that are shown where it changed."""

MOST_LETTERS = 80
"""Of a name in a file name."""

Pace = Callable[[str], float]
"""Seconds that one step of the optimiser takes with a learner."""


@dataclass(frozen=True)
class _Record:
    """What is read of the record of a step."""

    key: str
    name: str = ""
    seconds: float = 0.0
    resumed: bool = False
    files: Mapping[str, Content] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    picks: str = ""
    picking_seconds: float = 0.0
    test_accuracy: float | None = None
    noise_rate: float | None = None


@dataclass(frozen=True)
class Step:
    """A piece of work with a folder of its own; the base of every kind of step.

    A kind says what its steps depend on (`lay_out`), does the work (`work`) and knows what it costs (`cost`).

    Parameters
    ----------
    name
        For people: ``"warm-up of sop+, seed 0"``.
    folder
        Where its results lie.
    depends
        Everything that decides its result, as a JSON value.

    Attributes
    ----------
    title, place
        What one of this kind is called, and the folder of all of them.
    spreads
        Whether several of this kind may be done at a time, in processes of their own.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> class Example(Step):
    ...     def work(self, progress):
    ...         return {"written": self.folder.name}
    >>> with tempfile.TemporaryDirectory() as name:
    ...     step = Example("an example", Path(name) / "example", {"seed": 0})
    ...     step.do(Progress())
    ...     print(step.done, step.record()["written"])
    True example
    """

    title: ClassVar[str] = "step"
    place: ClassVar[str] = "steps"
    spreads: ClassVar[bool] = True

    name: str
    folder: Path
    depends: Mapping[str, Any]

    @classmethod
    def lay_out(cls, steps: "Steps") -> None:
        """Make all steps of this kind that a run is to have, with `Steps.once`; none unless told."""

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Do it, in the folder; return what is to be known of it later."""
        raise NotImplementedError

    def cost(self) -> Mapping[str, float]:
        """Return how many steps of an optimiser it takes, by learner."""
        return {}

    def seconds(self, pace: Pace) -> float:
        """Return how long it takes; `pace` gives the seconds that a step of the optimiser takes with a learner."""
        return sum(count * pace(learner) for learner, count in self.cost().items())

    @cached_property
    def key(self) -> str:
        """A fingerprint of what it depends on; part of what later steps depend on."""
        import hashlib

        return hashlib.sha256(_text(self._plain()).encode()).hexdigest()

    def _plain(self) -> dict[str, Any]:
        return _plain(self.depends)

    def record(self) -> dict[str, Any] | None:
        """Return what was written when it was done, or None."""
        try:
            return self._read_record()
        except InputError:
            return None

    def _read_record(self) -> dict[str, Any] | None:
        path = self.folder / DONE
        if not path.exists():
            return None
        found = read_sealed(path, "record of a step")
        read_record(_Record, found, path)
        return found

    @property
    def round(self) -> int:
        """The round of selecting and training it belongs to, from 1; a later one goes by models of the one before."""
        return 1

    @property
    def uses(self) -> "tuple[Step, ...]":
        """Steps whose files it reads."""
        return ()

    def outputs(self) -> dict[str, str]:
        """Return fingerprints of what later steps go by; none where it is not done."""
        return {}

    def used(self) -> dict[str, str]:
        """Return fingerprints of what it goes by of steps before it, as they are now."""
        return {}

    @property
    def done(self) -> bool:
        """Whether it was done, by the same options, from what is there now, and all it wrote is there."""
        record = self.record()
        return (
            record is not None
            and record["key"] == self.key
            and record.get("used", {}) == (self.used() if "used" in record else {})
            and self.damage() is None
        )

    def damage(self, *, thorough: bool = False) -> str | None:
        """Say what is not as it was when it was done, or None; by its contents where files were touched, or if told."""
        try:
            record = self._read_record()
        except InputError as error:
            return str(error)
        if record is None or record["key"] != self.key:
            return None
        return damage_of(self.folder, read_record(_Record, record, self.folder / DONE).files, thorough=thorough)

    def mend(self, progress: Progress, *, thorough: bool = False) -> None:
        """Forget it where it is damaged, and say so, so that it is done again."""
        if (trouble := self.damage(thorough=thorough)) is not None:
            progress.say(f"{trouble}; {self.name} is done again")
            put_aside(self.folder)
        elif (record := self.record()) is not None and record["key"] == self.key:
            known = read_record(_Record, record, self.folder / DONE).files
            if (now := stamped(self.folder, known)) != known:
                _write(self.folder / DONE, seal(record | {"files": as_plain(now)}), force=True)

    def mend_used(self, progress: Progress) -> None:
        """Check what is about to be read of steps before it; what is damaged is done again."""
        for each in self.uses:
            each.mend(progress, thorough=True)
            each.do(progress)

    def do(self, progress: Progress) -> None:
        """Do it, unless it is done."""
        if not self.done:
            self.mend_used(progress)
            self.prepare(progress)
            self.carry_out(progress)

    def prepare(self, progress: Progress) -> None:
        """Make the folder; throw away what other options left there, and say what changed."""
        before, now = _read(self.folder / DEPENDS), self._plain() | {USED: self.used()}
        if before is not None and _text({USED: now[USED]} | before) == _text(now):
            return
        if before is not None:
            progress.say(f"{self.name}: {_difference(before, now)}; doing it again")
        put_aside(self.folder)
        make_folder(self.folder)
        _write(self.folder / DEPENDS, now)

    def carry_out(self, progress: Progress) -> None:
        """Do the work in the prepared folder, and mark it as done."""
        resumed = any(each.name != DEPENDS for each in self.folder.iterdir())
        begin = time.perf_counter()
        facts = self.work(progress)
        known = {"key": self.key, "name": self.name, "seconds": time.perf_counter() - begin, "resumed": resumed}
        files = as_plain(contents_of(self.folder, without=(DONE, DEPENDS)))
        _write(self.folder / DONE, seal({**known, **facts, "used": self.used(), "files": files}), force=True)


@dataclass(frozen=True)
class SignalsStep(Step):
    """A step that provides signals for methods to go by."""

    learner: str
    seed: int

    @property
    def signals(self) -> Path:
        """Where its signals lie."""
        return self.folder / SIGNALS

    def charge(self, needs: Collection[str]) -> int:
        """Return how many steps of a training the signals cost whoever goes by some of them.

        Shared signals cost everybody the same, as if they were nobody else's; what is no training costs nothing.
        """
        del needs
        return 0

    def outputs(self) -> dict[str, str]:
        """Return the fingerprint of every signal."""
        files = (self.record() or {}).get("files", {})
        return {name: one["sha256"] for name, one in files.items() if name.startswith(f"{SIGNALS}/")}

    @classmethod
    def provide(cls, steps: "Steps", learner: str, seed: int) -> Self | None:
        """Return the step whose signals methods go by, for a learner and a seed; None to leave it to another kind."""
        raise NotImplementedError


S = TypeVar("S", bound=Step)


class Steps:
    """All steps of a run, each made once, with everything its result depends on.

    Parameters
    ----------
    options
        What to do.
    dataset
        With what.
    folder
        Where everything goes.
    kinds
        Kinds of steps, in the order in which they are begun.
    inputs
        What `data` and `truth` were when a run was made, to look at it as it is; what they are now unless given.

    Attributes
    ----------
    data, truth
        Fingerprints of the data set, and of what results are measured by.
    """

    def __init__(
        self,
        options: "StepOptions",
        dataset: "Dataset",
        folder: Path,
        kinds: Iterable[type[Step]],
        inputs: tuple[dict[str, str], dict[str, str]] | None = None,
    ) -> None:
        self.options, self.dataset, self.folder, self.kinds = options, dataset, folder, tuple(kinds)
        self.data, self.truth = inputs or (identify(dataset, folder), identify_truth(dataset, folder))
        self._made: dict[tuple[Any, ...], Step] = {}
        self._plans: dict[str, TrainingPlan] = {}
        for kind in self.kinds:
            kind.lay_out(self)

    def once(self, key: tuple[Any, ...], make: Callable[[], S]) -> S:
        """Return the step of a key; make it where there is none yet."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]

    def of(self, kind: type[S]) -> list[S]:
        """Return all steps of a kind."""
        return [step for step in self._made.values() if isinstance(step, kind)]

    def __iter__(self) -> Iterator[Step]:
        for kind in self.kinds:
            yield from self.of(kind)

    def stages(self) -> Iterator[tuple[type[Step], list[Step]]]:
        """Give the steps that may be done at a time, with their kind: kind by kind, round by round."""
        for number in range(1, 1 + max((step.round for step in self), default=0)):
            for kind in self.kinds:
                if some := [step for step in self.of(kind) if step.round == number]:
                    yield kind, some

    def left(self) -> list[Step]:
        """Return those that are not done, in the order in which they are begun."""
        return [step for step in self if not step.done]

    @property
    def seeds(self) -> range:
        """The seed of every repeat."""
        return range(self.options.seed, self.options.seed + self.options.seeds)

    def plan(self, learner: str, seed: int) -> "TrainingPlan":
        """Return how a learner is trained."""
        if learner not in self._plans:
            self._plans[learner] = self.options.plan(self.dataset, learner)
        return replace(self._plans[learner], seed=seed)

    def provider(self, learner: str, seed: int) -> SignalsStep:
        """Return the step whose signals methods go by, for a learner and a seed."""
        for kind in self.kinds:
            if issubclass(kind, SignalsStep) and (found := kind.provide(self, learner, seed)) is not None:
                return found
        raise LookupError("no kind of step provides signals")


def sweep(home: Path) -> None:
    """Remove what killed processes left half written or half removed anywhere in a folder."""
    for place, folders, files in os.walk(home):
        for name in (*folders, *files):
            if name.startswith(".") and name.endswith(STALE):
                remove(Path(place, name))


def _write(path: Path, value: Mapping[str, Any], *, force: bool = False) -> None:
    from prune4rel.storage import to_json, write_text

    write_text(path, to_json(value, indent=1) + "\n", force=force)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = read_json(path)
    except InputError:
        return None
    return found if isinstance(found, dict) else None


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON has them."""
    from prune4rel.storage import to_json

    plain: dict[str, Any] = json.loads(to_json(dict(values)))
    return plain


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _difference(before: Mapping[str, Any], now: Mapping[str, Any], path: str = "") -> str:
    """Say in words what changed."""
    for name in {**now, **before}:
        old, new = before.get(name), now.get(name)
        if _text(old) == _text(new):
            continue
        if isinstance(old, dict) and isinstance(new, dict) and name != USED:
            return _difference(old, new, f"{path}{name}.")
        if name in ("after", USED):
            return "a step before it changed"
        return f"{path}{name} was {_shown(old)} and is {_shown(new)} now"
    raise AssertionError("only called where something changed")


def _shown(value: object) -> str:
    from prune4rel.storage import to_json

    text = to_json(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def written(ratio: float) -> str:
    """Write a ratio as short as it can be told from others.

    >>> written(0.2), written(0.12345678)
    ('0.2', '0.12345678')
    """
    short = f"{ratio:g}"
    return short if float(short) == ratio else repr(ratio)


def slug(text: str) -> str:
    """Turn a name into part of a file name; different names stay different, on every file system.

    >>> slug("prune4rel (label-aware)"), slug("sop+"), slug("a/b:c")
    ('prune4rel_label-aware', 'sop+', 'a-b-c-3b07f8')
    """
    word = r"[a-z0-9][a-z0-9.+=-]*"
    if len(text) <= MOST_LETTERS and (usual := re.fullmatch(rf"({word})(?: \(({word})\))?", text)):
        return "_".join(filter(None, usual.groups()))
    plain = re.sub(r"[^\w.+=-]+", "-", text, flags=re.ASCII).strip(".-")[:MOST_LETTERS]
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return f"{plain}-{digest}".lstrip("-")
