"""Decisions in files, whoever wrote them: the log of a review, or a table that a spreadsheet opens."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from prune4rel.atomic import defuse, undo_defuse
from prune4rel.decisions.log import KINDS, Decision, DecisionLog
from prune4rel.errors import InputError, nearest
from prune4rel.reading import reading

COLUMNS = ("index", "id", "decision", "label", "given", "who", "when", "content")
"""Columns of decisions as CSV; `index` or `id`, and `label` or `decision`, are enough to be read."""


def read_decisions(path: str | Path) -> tuple[list[Decision], tuple[str, ...]]:
    """Read the decisions that were not undone, in order, and notes on lines that could not be read.

    From ``.jsonl`` or ``.csv``; of several on one example the last one counts.
    """
    path = Path(path)
    if path.is_dir():
        path = path / "decisions.jsonl"
    if not path.is_file():
        raise InputError(f"{path}: no such file; `prune4rel review` writes one, and a CSV will do, too")
    if path.suffix == ".csv":
        return _read_csv(path), ()
    log = DecisionLog(path)
    if log.damage and not log.entries:
        raise InputError(f"{path}: holds no decision; expected the lines that `prune4rel review` writes, or a .csv")
    standing = [each for each in log.entries if isinstance(each, Decision) and not log.is_undone(each.batch)]
    return standing, tuple(f"{path}: {each}" for each in log.damage)


def _read_csv(path: Path) -> list[Decision]:
    with reading(path, "CSV in UTF-8"), path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    names = set(rows[0]) if rows else set()
    if rows and not ({"index", "id"} & names and {"label", "decision"} & names):
        raise InputError(
            f"{path}: has the columns {', '.join(map(str, rows[0]))}; needs index or id, and label or decision"
        )
    found = [_from_row(row, f"{path}: row {number}") for number, row in enumerate(rows, start=1)]
    return [each for each in found if each is not None]


def _from_row(row: Mapping[str, str | None], where: str) -> Decision | None:
    """Read one row of a CSV; one without a decision says nothing."""
    told = {name: undo_defuse((row.get(name) or "").strip()) for name in COLUMNS}
    what, label = told["decision"].lower(), told["label"]
    if not what and not label:
        return None
    keeps = what == "keep"
    if keeps or not what:
        what, label = "label", label or told["given"]
    if what not in KINDS:
        raise InputError(f"{where}: unknown decision {told['decision']!r}; {nearest(what, KINDS)}")
    if what == "label" and not label and not keeps:
        raise InputError(f"{where}: decides a label, but names none")
    try:
        index = int(told["index"] or -1)
    except ValueError:
        raise InputError(f"{where}: index must be a whole number, not {told['index']!r}") from None
    return Decision(
        index=index,
        what=what,  # type: ignore[arg-type]
        label=label or None if what == "label" else None,
        given=told["given"] or None,
        id=told["id"] or None,
        content=told["content"] or None,
        who=told["who"],
        when=told["when"],
    )


def write_csv(decisions: Iterable[Decision], path: Path) -> None:
    """Write decisions as CSV, for `prune4rel.storage.write_whole` to put in place."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for each in decisions:
            values = asdict(each) | {"decision": each.what}
            table.writerow({name: defuse(values[name]) for name in COLUMNS})
