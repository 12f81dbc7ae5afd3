"""Why decisions count for nothing here, those of one kind told together."""

from prune4rel.errors import InputError

NAMED = 3
"""Examples named beside the first one."""


class MisfitError(InputError):
    """A decision fits no example; the reason is the same for others but for the example's name."""

    def __init__(self, before: str, example: str, after: str = "") -> None:
        super().__init__(f"{before}{example}{after}", "decisions")
        self.example, self.kind = example, (before, after)


class Refusals:
    """Collects reasons.

    Examples
    --------
    >>> found = Refusals()
    >>> for name in "xyy":
    ...     found.add(MisfitError("no example is called ", repr(name)))
    >>> found.lines
    ("3 decisions: no example is called 'x'; likewise 'y'",)
    """

    def __init__(self) -> None:
        self._times: dict[tuple[str, ...], int] = {}
        self._names: dict[tuple[str, ...], dict[str, None]] = {}

    def add(self, error: InputError) -> None:
        """Count one decision that was refused."""
        kind, name = (error.kind, error.example) if isinstance(error, MisfitError) else ((str(error),), "")
        self._times[kind] = self._times.get(kind, 0) + 1
        self._names.setdefault(kind, {})[name] = None

    @property
    def lines(self) -> tuple[str, ...]:
        """One line a kind: how many, why, and of which examples."""
        return tuple(map(self._line, self._times))

    def _line(self, kind: tuple[str, ...]) -> str:
        times, (first, *others) = self._times[kind], self._names[kind]
        line = f"{times:,} decision{'s' * (times > 1)}: {first.join(kind) if len(kind) > 1 else kind[0]}"
        if others:
            line += f"; likewise {', '.join(others[:NAMED])}"
        return line + (f" and {len(others) - NAMED:,} more" if len(others) > NAMED else "")
