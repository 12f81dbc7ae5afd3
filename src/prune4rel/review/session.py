"""Everything the page can ask for and do, as plain values: what the server only hands on."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from prune4rel.decisions import Decision, Undo, me
from prune4rel.decisions.settle import CANNOT_TELL, REMOVED
from prune4rel.errors import InputError, in_a_line, refuse_unknown
from prune4rel.labels import UNDECIDED
from prune4rel.reading import read_record
from prune4rel.review.folder import ReviewFolder
from prune4rel.review.left import Expectation, ScoreBins
from prune4rel.review.order import ORDERS, order_rows

MOST_ROWS = 500
MOST_DECIDED = 200_000
SHORT_TEXT, LONG_TEXT = 280, 20_000
MOST_NEIGHBOURS = 12
MOST_PAIRS = 200
LOOK = 24
"""Examples shown before a class pair is accepted in bulk."""

STATES = ("any", "undecided", "decided", "unsure", "removed", "changed")


@dataclass(frozen=True)
class Filter:
    """Which examples are listed, and in which order.

    Parameters
    ----------
    order
        One of `ORDERS`.
    given, predicted
        Numbers of classes; None for any.
    low, high
        Bounds of `label_score`.
    state
        One of `STATES`, as it was after `asof` entries of the log; so a list holds still while it is worked through.
    source
        Who judged; None for anybody.
    issues
        Only labels believed to be wrong.
    asof
        Number of entries of the log.
    """

    order: str = "worth"
    given: int | None = None
    predicted: int | None = None
    low: float = 0.0
    high: float = 1.0
    state: str = "undecided"
    source: str | None = None
    issues: bool = False
    asof: int = 0

    @classmethod
    def read(cls, values: object) -> Self:
        """Check what a browser sent."""
        if not isinstance(values, dict):
            raise InputError("a filter is an object of names and values")
        refuse_unknown("a filter", values, [each.name for each in fields(cls)])
        found = read_record(cls, values, "this is no filter")
        if found.order not in ORDERS or found.state not in STATES or found.asof < 0:
            raise InputError(f"this is no filter: {in_a_line(values)}")
        return found


class Review:
    """A folder under review by any number of windows; every method may be called from any thread."""

    def __init__(self, folder: ReviewFolder, *, order: str = "worth", seed: int = 0, read_only: bool = False) -> None:
        self.folder, self.order, self.seed, self.read_only = folder, order, seed, read_only
        self.labels, self.log = folder.labels, folder.log
        self._lock = threading.RLock()
        self._listed = lru_cache(maxsize=16)(self._list)
        self._ordered = lru_cache(maxsize=8)(self._order)
        self._expectation: tuple[int, Expectation] | None = None
        self._code = np.full(len(folder.labels), UNDECIDED, dtype=np.int64)
        self._bulk = np.zeros(len(folder.labels), dtype=np.bool_)
        self._before = np.zeros(len(folder.labels), dtype=np.bool_)
        for settled in (folder.labels.verified, folder.labels.removed):  # whose scores are nobody's guess
            self._before |= False if settled is None else settled
        self._numbers = {name: number for number, name in enumerate(folder.labels.class_names)}
        self._known = self._begun = 0
        self._sync()

    def _sync(self) -> int:
        """Take over what was decided since; return the number of entries."""
        self.log.refresh()
        version = len(self.log.entries)
        if self.log.times_begun != self._begun:  # somebody put another file there
            self._code[:], self._bulk[:], self._known, self._begun = UNDECIDED, False, 0, self.log.times_begun
            self._listed.cache_clear()
            self._ordered.cache_clear()
        if version != self._known:
            for row in self.log.rows_since(self._known):
                decision = self.log.decision_on(row)
                self._code[row] = self._code_of(decision)
                self._bulk[row] = decision is not None and decision.bulk
            self._known = version
        return version

    def _code_of(self, decision: Decision | None) -> int:
        if decision is None:
            return UNDECIDED
        if decision.what == "label":
            return self._numbers.get(str(decision.label), CANNOT_TELL)
        return CANNOT_TELL if decision.what == "unsure" else REMOVED

    def prepare(self) -> None:
        """Work out what the first page asks for, which takes seconds where there are a million labels."""
        self.about()
        wanted = Filter(order=self.order, asof=self._known)
        self.left(wanted, 0)
        for row in self.rows(wanted, 0, 1)["rows"]:
            self.example(row["row"])

    @cached_property
    def _bins(self) -> ScoreBins:
        return ScoreBins(self.labels.label_score)

    def about(self) -> dict[str, Any]:
        """Return what a page needs to know before anything else."""
        labels, folder = self.labels, self.folder
        with self._lock:
            version = self._sync()
            return {
                "title": folder.path.resolve().name,
                "n": len(labels),
                "classes": list(labels.class_names),
                "kind": folder.kind,
                "trouble": folder.trouble,
                "order": self.order,
                "orders": list(ORDERS),
                "sources": self._sources,
                "pairs": self._pairs,
                "noise_rate": labels.noise_rate,
                "read_only": self.read_only,
                "who": me(),
                "notes": [*(f"{self.log.path.name}: {each}" for each in self.log.damage), *self.log.refused],
                "version": version,
                "counts": self.counts(),
            }

    @cached_property
    def _sources(self) -> list[str]:
        return [str(each) for each in np.unique(np.asarray(self.labels.source))]

    @cached_property
    def _pairs(self) -> list[dict[str, int]]:
        """The most common pairs of a given label and another that is suggested."""
        given, predicted, C = self.labels.given_label, self.folder.suggested[0], len(self.labels.class_names)
        apart = given != predicted
        keys, times = np.unique(given[apart] * C + predicted[apart], return_counts=True)
        best = np.lexsort((keys, -times))[:MOST_PAIRS]
        return [{"given": int(keys[at] // C), "predicted": int(keys[at] % C), "count": int(times[at])} for at in best]

    def counts(self) -> dict[str, int]:
        """Return how many examples were decided, and how."""
        code, given = self._code, self.labels.given_label
        return {
            "decided": int((code != UNDECIDED).sum()),
            "kept": int((code == given).sum()),
            "changed": int(((code >= 0) & (code != given)).sum()),
            "unsure": int((code == CANNOT_TELL).sum()),
            "removed": int((code == REMOVED).sum()),
        }

    # What is listed.

    def rows(self, wanted: Filter, start: int, count: int) -> dict[str, Any]:
        """Return some examples of a list, and how many it has."""
        with self._lock:
            version = self._sync()
            listed = self._listed(replace(wanted, asof=min(wanted.asof, version)))
            part = listed[max(0, start) : max(0, start) + min(max(0, count), MOST_ROWS)]
            rows = [self._row(int(row)) for row in part]
            return {"total": len(listed), "start": start, "rows": rows, "version": version}

    def _codes(self, asof: int) -> NDArray[np.int64]:
        """(n,) what every example came to after some entries of the log."""
        if asof >= self._known:
            return self._code
        codes = self._code.copy()
        codes[self.log.rows_since(asof)] = UNDECIDED
        undone = {each.undoes for each in self.log.entries[:asof] if isinstance(each, Undo)}
        for entry in self.log.entries[:asof]:
            if isinstance(entry, Decision) and entry.batch not in undone and (row := self.log.place(entry)) is not None:
                codes[row] = self._code_of(entry)
        return codes

    def _order(self, order: str, asof: int) -> NDArray[np.int64]:
        if order == "worth":
            return order_rows(
                order, self.labels, self._codes(asof) != UNDECIDED, self.folder.neighbours, seed=self.seed
            )
        return order_rows(order, self.labels, np.zeros(0, dtype=np.bool_), seed=self.seed)

    def _list(self, wanted: Filter) -> NDArray[np.int64]:
        labels = self.labels
        order = self._ordered(wanted.order, wanted.asof if wanted.order == "worth" else 0)
        keep = (labels.label_score >= wanted.low) & (labels.label_score <= wanted.high)
        if wanted.given is not None:
            keep &= labels.given_label == wanted.given
        if wanted.predicted is not None:
            keep &= self.folder.suggested[0] == wanted.predicted
        if wanted.issues:
            keep &= labels.is_label_issue
        if wanted.source is not None:
            keep &= np.asarray(labels.source) == wanted.source
        if wanted.state != "any":
            keep &= self._is(wanted.state, self._codes(wanted.asof))
        return order[keep[order]]

    def _is(self, state: str, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = {
            "undecided": codes == UNDECIDED,
            "decided": codes != UNDECIDED,
            "unsure": codes == CANNOT_TELL,
            "removed": codes == REMOVED,
            "changed": (codes >= 0) & (codes != self.labels.given_label),
        }[state]
        return chosen

    def _row(self, row: int) -> dict[str, Any]:
        labels = self.labels
        shown: dict[str, Any] = {
            "row": row,
            "id": None if labels.ids is None else labels.ids[row].item(),
            "given": int(labels.given_label[row]),
            "predicted": int(self.folder.suggested[0][row]),
            "score": round(float(labels.label_score[row]), 4),
            "confidence": round(float(self.folder.suggested[1][row]), 4),
            "issue": bool(labels.is_label_issue[row]),
            "state": self._state(row),
        }
        if self.folder.kind == "texts":
            shown["text"] = self._text(row)[:SHORT_TEXT]
        return shown

    def _row_of_test(self, row: int) -> dict[str, Any]:
        test = None if self.folder.dataset is None else self.folder.dataset.test
        if test is None or test.texts is None or row >= len(test):
            return {"row": row}
        return {"row": row, "text": test.texts[row][:SHORT_TEXT]}

    def _text(self, row: int) -> str:
        dataset = self.folder.dataset
        return "" if dataset is None or dataset.train.texts is None else dataset.train.texts[row]

    def _state(self, row: int) -> dict[str, Any] | None:
        decision = self.log.decision_on(row)
        if decision is None:
            return None
        return {name: getattr(decision, name) for name in ("what", "label", "who", "when", "batch", "bulk")}

    def example(self, row: int) -> dict[str, Any]:
        """Return all there is to say of one example: its evidence, too."""
        if not 0 <= row < len(self.labels):
            raise InputError(f"there is no row {row} among {len(self.labels)}")
        with self._lock:
            self._sync()
            shown = self._row(row)
            if self.folder.kind == "texts":
                text = self._text(row)
                shown |= {"text": text[:LONG_TEXT], "cut": len(text) > LONG_TEXT}
            near = self.folder.neighbours
            shown["neighbours"] = []
            if near is not None:
                pairs = zip(near[0][row].tolist(), near[1][row].tolist(), strict=True)
                some = [(other, like) for other, like in pairs if other >= 0 and other != row][:MOST_NEIGHBOURS]
                shown["neighbours"] = [{**self._row(other), "similarity": round(like, 3)} for other, like in some]
            shown["duplicates"] = [
                {
                    **(self._row(other) if split == "train" else self._row_of_test(other)),
                    "split": split,
                    "kind": kind,
                }
                for other, split, kind in self.folder.duplicates_of(row)[:MOST_NEIGHBOURS]
            ]
            shown["pair"] = self._pair(shown["given"], shown["predicted"])
            likeliest = self.folder.likeliest(row)
            chances = self.folder.probabilities
            shown["likeliest"] = [
                {"label": each, "probability": None if chances is None else round(float(chances[row, each]), 4)}
                for each in likeliest
            ]
            shown["cells"] = self.folder.cells_of(row)
            shown["source"] = str(np.asarray(self.labels.source)[row])
            return shown

    def _pair(self, given: int, predicted: int) -> dict[str, Any]:
        """Say how common a pair is, and what was decided on it so far."""
        matrix = self.labels.noise_matrix
        rows = self._rows_of_pair(given, predicted)
        codes = self._code[rows]
        return {
            "suggested": len(rows),
            "rate": None if matrix is None else round(float(matrix[predicted, given]), 4),
            "settled": int((codes >= 0).sum()),
            "accepted": int((codes == predicted).sum()),
            "kept": int((codes == given).sum()),
        }

    def _rows_of_pair(self, given: int, predicted: int) -> NDArray[np.int64]:
        return np.flatnonzero((self.labels.given_label == given) & (self.folder.suggested[0] == predicted))

    # What is decided.

    def decide(self, asked: Sequence[Mapping[str, Any]], who: str) -> dict[str, Any]:
        """Save decisions, synced; each says what its decider saw, so that nobody is overwritten unseen."""
        if not asked or len(asked) > MOST_ROWS:
            raise InputError(f"decide 1 to {MOST_ROWS} examples at a time")
        expected: dict[int, str | None] = {}
        decisions = []
        for each in asked:
            row, what, label, seen = (each.get(name) for name in ("row", "what", "label", "seen"))
            if type(row) is not int or not isinstance(what, str) or not isinstance(seen, str | None):
                raise InputError(f"this is no decision: {dict(each)!r}")
            decisions.append(self.folder.decision(row, what, label, who))
            expected[row] = seen
        return self._save(decisions, expected)

    def _save(self, decisions: Sequence[Decision], expected: Mapping[int, str | None]) -> dict[str, Any]:
        self._refuse_where_read_only()
        with self._lock:
            batch = self.log.append(decisions, expected=expected)
            self._sync()
            return {"batch": batch} | self.states([each.index for each in decisions])

    def undo(self, batch: str | None, who: str) -> dict[str, Any]:
        """Take back a batch, or somebody's last one."""
        self._refuse_where_read_only()
        with self._lock:
            self._sync()
            name = batch or self.log.last_batch(who)
            if name is None:
                raise InputError(f"there is nothing of {who or 'nobody'} to undo")
            self.log.undo(name, who=who)
            self._sync()
            return {"batch": name} | self.states(self.log.rows_of(name))

    def _refuse_where_read_only(self) -> None:
        if self.read_only:
            raise InputError("this is a read-only look; start `prune4rel review` without --read-only to decide")

    def bulk_rows(self, given: int, predicted: int, confidence: float) -> NDArray[np.int64]:
        """Return undecided rows of a class pair whose suggestion is at least so sure."""
        rows = self._rows_of_pair(given, predicted)
        wanted: NDArray[np.bool_] = (self.folder.suggested[1][rows] >= confidence) & (self._code[rows] == UNDECIDED)
        return rows[wanted]

    def look(self, given: int, predicted: int, confidence: float) -> dict[str, Any]:
        """Return a sample of what `accept` would accept, drawn at random, and the ticket that `accept` asks for.

        ``"surest"`` is how sure the surest undecided suggestion of the pair is, None where there is none.
        """
        with self._lock:
            self._sync()
            rows = self.bulk_rows(given, predicted, confidence)
            sample = np.random.default_rng(len(rows)).permutation(rows)[:LOOK]
            shown = [self._row(int(row)) for row in sample]
            some = self.folder.suggested[1][self.bulk_rows(given, predicted, 0.0)]
            surest = round(float(some.max()), 4) if some.size else None
            return {"count": len(rows), "surest": surest, "sample": shown, "ticket": _ticket(rows)}

    def accept(self, given: int, predicted: int, confidence: float, ticket: str, who: str) -> dict[str, Any]:
        """Accept the suggestion for all that were looked at by a sample, in one batch."""
        with self._lock:
            self._sync()
            rows = self.bulk_rows(given, predicted, confidence)
            if _ticket(rows) != ticket:
                raise InputError("other examples than you looked at would be accepted by now; look again")
            if not len(rows) or len(rows) > MOST_DECIDED:
                raise InputError(f"accept 1 to {MOST_DECIDED:,} examples at a time, not {len(rows):,}")
            name = self.labels.class_names[predicted]
            made = [self.folder.decision(int(row), "label", name, who, bulk=True) for row in rows]
            return self._save(made, {int(row): None for row in rows}) | {"count": len(rows)}

    # What has changed, and what is left.

    def states(self, rows: Sequence[int]) -> dict[str, Any]:
        """Return what stands for some rows, the counter, and the version of all of it."""
        states = {str(row): self._state(row) for row in rows[:MOST_ROWS]}
        return {
            "states": states,
            "counts": self.counts(),
            "version": self._known,
            "many": len(rows) > MOST_ROWS,
        }

    def changes(self, since: int) -> dict[str, Any]:
        """Return what others and other windows decided after a version."""
        with self._lock:
            self._sync()
            return self.states(self.log.rows_since(since))

    def left(self, wanted: Filter, position: int) -> dict[str, Any]:
        """Return how many wrong labels to expect above and below a place of a list, among what is undecided."""
        with self._lock:
            version = self._sync()
            listed = self._listed(replace(wanted, asof=min(wanted.asof, version)))
            codes, bulk = self._code.copy(), self._bulk.copy()
        if self._expectation is None or self._expectation[0] != version:
            reviewed = (codes >= 0) & ~bulk & ~self._before
            wrong = reviewed & (codes != self.labels.given_label)
            self._expectation = (version, Expectation(self._bins, reviewed, wrong))
        expectation = self._expectation[1]
        parts = {"above": listed[:position], "below": listed[position:], "all": np.arange(len(codes))}
        found: dict[str, Any] = {"version": version}
        for name, rows in parts.items():
            left = expectation.among(rows[(codes[rows] == UNDECIDED) & ~self._before[rows]])
            found[name] = {"expected": round(left.expected, 1), "low": left.low, "high": left.high}
        return found


def _ticket(rows: NDArray[np.int64]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows, dtype=np.int64).tobytes()).hexdigest()[:16]
