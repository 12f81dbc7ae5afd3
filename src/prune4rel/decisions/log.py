"""What people decided about labels: an append-only file of checksummed lines, and what it comes to.

One line is one decision on one example: who, when, what, on which label. Lines are only ever added, under a lock, and
synced before they count as written. A line that was cut or damaged is left out and reported; the others stand. Every
line names the one before it, and a small file beside them the last, so that lines that are gone are reported, too. An
example is known again by its id and by the digest of its content, so that decisions outlive a new table of labels.
"""

import getpass
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import IO, Literal, get_args

from prune4rel.atomic import write_text
from prune4rel.decisions.refusals import Refusals
from prune4rel.errors import InputError
from prune4rel.reading import (
    check_fits,
    check_regular,
    parse_json,
    read_record,
    read_sealed,
    seal,
)

What = Literal["label", "unsure", "remove"]
KINDS: tuple[str, ...] = get_args(What)
CHECK = 16
"""Hexadecimal digits of the checksum that ends every line."""

AFTER = "after"
"""What a line calls the checksum of the line before it."""

ANY = "*"


@dataclass(frozen=True)
class Decision:
    """What somebody decided about one example.

    Parameters
    ----------
    index
        Its row when it was decided.
    what
        ``"label"`` (its label is `label`; None: as given), ``"unsure"`` (nobody can tell) or ``"remove"`` (it does not
        belong).
    label, given
        Names of the class it was decided to be, and of the label it was given.
    id, content
        Your own name for it, and a digest of the original example, where there are any.
    who, when
        Who decided, and the time in UTC.
    batch
        Names those decisions that were made in one go; they are undone in one go, too.
    bulk
        Whether many were decided at once, so that nobody looked at each.

    Examples
    --------
    >>> Decision(index=7, what="label", label="cat", given="dog", who="ann").label
    'cat'
    """

    index: int
    what: What
    label: str | None = None
    given: str | None = None
    id: int | str | None = None
    content: str | None = None
    who: str = ""
    when: str = ""
    batch: str = ""
    bulk: bool = False


@dataclass(frozen=True)
class Undo:
    """Takes back all decisions of one batch."""

    undoes: str
    who: str = ""
    when: str = ""


@dataclass(frozen=True)
class Damage:
    """A line that says nothing any more, or one beside which lines are gone."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} {self.reason}"


@dataclass(frozen=True)
class _End:
    """What is written down beside a log: how many entries it has, and the checksum of the last."""

    entries: int
    last: str


class ConflictError(InputError):
    """Somebody else has decided in between; `now` is what stands, by row."""

    def __init__(self, message: str, now: Mapping[int, Decision | None]) -> None:
        super().__init__(message, "decisions")
        self.now = dict(now)


class DecisionLog:
    """The decisions in one file, read as it grows; any number of processes may append.

    Parameters
    ----------
    path
        A ``.jsonl`` file; it is made by the first decision.
    row_of
        The row of the example that a decision is about. One for which it raises an `InputError` counts for nothing
        and is among the `refused`. The row it was decided at, unless told.

    Attributes
    ----------
    entries
        Everything that was written down, in its order.
    damage
        Lines that could not be read.
    times_begun
        How often it was read from its beginning: more than once where another file was put in its place.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     log = DecisionLog(Path(name) / "decisions.jsonl")
    ...     batch = log.append([Decision(index=3, what="label", label="cat", who="ann")])
    ...     there = DecisionLog(log.path).standing[3].label
    ...     log.undo(batch, who="ann")
    ...     there, log.standing
    ('cat', {})
    """

    def __init__(self, path: str | Path, row_of: Callable[[Decision], int] = attrgetter("index")) -> None:
        self.path = Path(path)
        self.row_of = row_of
        self.entries: list[Decision | Undo] = []
        self.damage: list[Damage] = []
        self.times_begun = 0
        self._forget()
        end = self._promised()
        self.refresh()
        gone = 0 if end is None or end.last in self._checks else max(1, end.entries - len(self.entries))
        if gone > len(self.damage):  # else they are those that are damaged
            self.damage.append(
                Damage(
                    max(1, self._lines),
                    f"is not the last that was written: {gone} more are gone; put them back (or, if that was meant, "
                    f"remove {self._end_file.name} beside it)",
                )
            )

    @property
    def _end_file(self) -> Path:
        return self.path.with_name(f".{self.path.name}.end")

    def _promised(self) -> _End | None:
        """Return what was written down of the end; read before the log, which is only ever longer."""
        if not self._end_file.is_file():
            return None
        with suppress(InputError):
            return read_record(_End, read_sealed(self._end_file), self._end_file)
        return None

    def _promise(self) -> None:
        """Write down where the log ends; where that cannot be, nothing is promised."""
        text = json.dumps(seal(asdict(_End(len(self.entries), self._last)))) + "\n"
        with suppress(InputError, OSError):
            write_text(self._end_file, text, force=True)

    def _forget(self) -> None:
        self.times_begun += 1
        self.entries.clear()
        self.damage.clear()
        self._file: tuple[int, int] | None = None
        self._offset = self._lines = 0
        self._rest = b""
        self._last, self._checks = "", {""}
        self._undone: set[str] = set()
        self._history: dict[int, list[Decision]] = {}
        self._rows: dict[str, list[int]] = {}
        self._refused = Refusals()

    @property
    def refused(self) -> tuple[str, ...]:
        """Why some decisions count for nothing, those of one kind in one line."""
        return self._refused.lines

    @property
    def standing(self) -> dict[int, Decision]:
        """The last decision on each row that was not undone."""
        found = {}
        for index in self._history:
            if (decision := self.decision_on(index)) is not None:
                found[index] = decision
        return found

    def decision_on(self, index: int) -> Decision | None:
        """Return what stands for one row."""
        for decision in reversed(self._history.get(index, ())):
            if decision.batch not in self._undone:
                return decision
        return None

    def rows_since(self, entry: int) -> list[int]:
        """Rows that entries from a number on are about, in ascending order."""
        rows: set[int] = set()
        for each in self.entries[entry:]:
            rows.update(self.rows_of(each.batch if isinstance(each, Decision) else each.undoes))
        return sorted(rows)

    def place(self, decision: Decision) -> int | None:
        """Return the row a decision counts for, or None where it counts for nothing."""
        try:
            return self.row_of(decision)
        except InputError:
            return None

    def rows_of(self, batch: str) -> list[int]:
        """Rows decided in a batch."""
        return self._rows.get(batch, [])

    def last_batch(self, who: str) -> str | None:
        """Return the latest batch of somebody that was not undone."""
        for each in reversed(self.entries):
            if isinstance(each, Decision) and each.who == who and each.batch not in self._undone:
                return each.batch
        return None

    def is_undone(self, batch: str) -> bool:
        """Whether a batch was taken back."""
        return batch in self._undone

    def refresh(self) -> bool:
        """Read what was added since; True where something was. Another file in its place is read from its beginning."""
        try:
            check_regular(self.path)  # a pipe would never end
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
                    self._forget()
                    self._file = status.st_dev, status.st_ino
                if status.st_size == self._offset:
                    return False
                check_fits(self.path, 20.0 * (status.st_size - self._offset))  # as values of Python
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            if self._file is None:
                return False
            self._forget()
            return True
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read ({error.strerror or error})") from None
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.damage = [each for each in self.damage if each.line != self._lines + 1]
        for line in lines:
            self._lines += 1
            if line.strip():
                self._take(line)
        if self._rest:
            self._last = ANY
            self.damage.append(Damage(self._lines + 1, "was cut before its end; it was left out"))
        return True

    def _take(self, line: bytes) -> None:
        try:
            entry, after, check = _from_line(line)
        except ValueError as error:
            self.damage.append(Damage(self._lines, f"{error}; it was left out"))
            self._last = ANY
            return
        if after is not None and ANY not in (after, self._last) and after != self._last:
            self.damage.append(Damage(self._lines, "does not follow the line before it: lines between are gone"))
        self._last = check
        self._checks.add(check)
        self.entries.append(entry)
        if isinstance(entry, Undo):
            self._undone.add(entry.undoes)
            return
        try:
            row = self.row_of(entry)
        except InputError as error:
            self._refused.add(error)
            return
        self._history.setdefault(row, []).append(entry)
        self._rows.setdefault(entry.batch, []).append(row)

    def append(self, decisions: Sequence[Decision], *, expected: Mapping[int, str | None] | None = None) -> str:
        """Add decisions as one batch and sync them to disk; return the batch's name.

        Parameters
        ----------
        decisions
            Those without a time or a name get them here.
        expected
            Of each row, the batch of the decision that its decider saw, or None where there was none. Where another
            one stands by now, nothing is written and a `ConflictError` says what.
        """
        batch = uuid.uuid4().hex[:12]
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        signed = [replace(each, batch=batch, when=each.when or when, who=each.who or me()) for each in decisions]
        with self._alone() as file:
            changed = {
                row: now
                for row, seen in (expected or {}).items()
                if ((now := self.decision_on(row)) is None) != (seen is None) or (now and now.batch != seen)
            }
            if changed:
                row, now = next(iter(changed.items()))
                said = "was undone" if now is None else f"was decided by {now.who or 'somebody'}: {_in_words(now)}"
                raise ConflictError(f"example {row} {said}, after you had looked", changed)
            self._write(file, signed)
        return batch

    def undo(self, batch: str, *, who: str | None = None) -> None:
        """Take a batch back; what stood before stands again."""
        with self._alone() as file:
            if not self.rows_of(batch):
                raise InputError(f"{self.path}: has no batch {batch!r} to undo")
            if batch not in self._undone:
                when = datetime.now(UTC).isoformat(timespec="milliseconds")
                self._write(file, [Undo(batch, who=me() if who is None else who, when=when)])

    def why_not_writable(self) -> str:
        """Say why nothing could be added here; empty where it could."""
        place = self.path if self.path.exists() else self.path.parent
        return "" if os.access(place, os.W_OK) else f"{place}: cannot be written"

    @contextmanager
    def _alone(self) -> Iterator[IO[bytes]]:
        """Open the file to append, hold it against all others, and know what they have written."""
        new = not self.path.exists()
        try:
            file = self.path.open("ab")
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror or error}); nothing was saved") from None
        with file:
            _hold(file)
            if new:
                _sync_folder(self.path.parent)
            self.refresh()
            yield file

    def _write(self, file: IO[bytes], entries: Sequence[Decision | Undo]) -> None:
        """Write all entries or none, and sync."""
        before = os.fstat(file.fileno()).st_size
        after, lines = self._last, []
        for entry in entries:
            line, after = _to_line(entry, after)
            lines.append(line)
        data = b"".join(lines)
        if self._rest:  # a cut line stays as it is, on a line of its own
            data = b"\n" + data
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file.fileno(), view) :]
            os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise InputError(f"{self.path}: writing failed ({error.strerror or error}); nothing was saved") from None
        self.refresh()
        self._promise()


def _hold(file: IO[bytes]) -> None:
    """Wait until no other process holds the file; the system lets go when it is closed."""
    if os.name == "nt":
        import msvcrt  # noqa: PLC0415 - only there

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
        return
    import fcntl  # noqa: PLC0415 - only there

    fcntl.flock(file.fileno(), fcntl.LOCK_EX)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def me() -> str:
    """Return what the system calls who is working here."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know no names
        return ""


def _in_words(decision: Decision) -> str:
    return {"label": repr(decision.label), "unsure": "cannot tell", "remove": "remove"}[decision.what]


def _to_line(entry: Decision | Undo, after: str) -> tuple[bytes, str]:
    """Return the line of an entry that comes after the one with a checksum, and its own checksum."""
    values = {name: value for name, value in asdict(entry).items() if value not in (None, "") and value is not False}
    text = json.dumps({**values, AFTER: after}, ensure_ascii=False, separators=(",", ":"))
    check = hashlib.sha256(text.encode()).hexdigest()[:CHECK]
    return f'{text[:-1]},"check":"{check}"}}\n'.encode(), check


def _from_line(line: bytes) -> tuple[Decision | Undo, str | None, str]:
    """Read a line back: its entry, the checksum it comes after, and its own; ValueError says what is wrong with it."""
    tail = len(f',"check":"{"0" * CHECK}"}}')
    body, end = line[:-tail] + b"}", line[-tail:]
    check = hashlib.sha256(body).hexdigest()[:CHECK]
    if end != f',"check":"{check}"}}'.encode():
        raise ValueError("is damaged: its checksum does not fit")
    with suppress(AttributeError, TypeError, ValueError):
        values = parse_json(body, "the line")
        after = values.pop(AFTER, None)
        kind: type[Decision | Undo] = Undo if "undoes" in values else Decision
        entry = read_record(kind, values, "the line")
        if set(values) <= {each.name for each in fields(kind)} and isinstance(after, str | None):
            return entry, after, check
    raise ValueError("is of a kind this version does not know")
