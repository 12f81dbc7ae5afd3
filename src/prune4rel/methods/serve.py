"""A method at work on an engine: on all examples at once, row by row, or in parts."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.engines.engine import Engine
from prune4rel.engines.local import LocalEngine
from prune4rel.errors import InputError
from prune4rel.methods.method import Method, Outcome, Request
from prune4rel.methods.ranking import keep_best, rounds
from prune4rel.progress import Progress

Indices = NDArray[np.int64]


def run_method(method: Method, engine: Engine, request: Request, options: dict[str, Any]) -> Outcome:
    """Run a method, in parts where that is asked and the method leaves it to us.

    A ranking by each example's own row picks the same in parts, so that it is left whole.
    """
    if request.partitions is None or method.by_row or "parts" in method.asks:
        return _serve(method, engine, request, options)
    in_parts = share_out if method.in_parts == "shares" else pick_again
    return in_parts(method, engine, request, options, request.partitions)


def _serve(method: Method, engine: Engine, request: Request, options: dict[str, Any]) -> Outcome:
    """Run a method on what the engine has in this process, or row by row where that will do."""
    signals = engine.signals
    if _runs_on(engine, method):
        return method.run(signals, replace(request, engine=engine), **options)
    if method.by_row:
        names = method.signals & set(engine.present)
        blocks = engine.each_block(_score_block, names, method.run, request.seed, options)
        scores = np.concatenate([outcome.scores for outcome in blocks if outcome.scores is not None])
        first = blocks[0]
        return keep_best(scores, signals.labels, request, **first.ranking, **first.options)
    raise InputError(
        f"method {method.name!r} cannot run on this engine, for it looks at all examples at once; leave engine= "
        "(--engine) out, add partitions= (--partitions), or use a method that ranks by row or asks the engine"
    )


def _runs_on(engine: Engine, method: Method) -> bool:
    """Whether a method asks the engine for what it needs, or finds it in this process."""
    here = engine.signals.arrays()
    asks = bool({*method.asks} - {"nearest"})
    return asks or all(any(name in here for name in need.split("|")) for need in method.needs)


def _score_block(signals: Any, run: Any, seed: int, options: dict[str, Any]) -> Outcome:
    """Let a method that ranks by row score some examples."""
    outcome: Outcome = run(signals, Request(size=len(signals), seed=seed), **options)
    if outcome.scores is None or not outcome.ranking:
        raise InputError("a method that is registered with by_row=True returns what keep_best makes of its scores")
    return replace(outcome, indices=outcome.indices[:0], gains=outcome.gains[:0])


def pick_again(method: Method, engine: Engine, request: Request, options: dict[str, Any], partitions: int) -> Outcome:
    """Let a method pick in every part, dealt at random, as many as are wanted in all; then among those picks."""
    n = len(engine.signals)
    part_of = np.random.default_rng(request.seed).permutation(n) % partitions
    proposed, outcomes = np.zeros(n, dtype=np.bool_), []
    proposed[request.first] = True
    with request.progress.task("picking in parts", total=partitions) as advance:
        for part in range(partitions):
            members = np.flatnonzero(part_of == part)
            if members.size:
                outcomes.append(_of_part(method, engine, request, options, members, min(request.size, members.size)))
                proposed[members[outcomes[-1].indices]] = True
            advance(1)
    among = np.flatnonzero(proposed)
    start = None if request.initial is None else np.searchsorted(among, request.initial)
    asked = replace(request, initial=start, partitions=None)
    final = _pick_among(method, engine, among, asked, options)
    note = f"Approximate: picked in {partitions} parts, then among their {len(among):,} candidates."
    return replace(
        final,
        indices=among[final.indices],
        scores=spread([(among, final.scores)], n),
        confidence=spread([(among, final.confidence)], n),
        options=_agreed([final, *outcomes], method.options | options),
        stats=final.stats | {"partitions": partitions, "candidates": len(among), "approximate": True},
        notes=(*final.notes, note),
    )


def share_out(method: Method, engine: Engine, request: Request, options: dict[str, Any], partitions: int) -> Outcome:
    """Let a method pick in every part its share of what is wanted; all those picks together are the answer."""
    labels, first = engine.signals.labels, request.first
    part_of, sizes = deal(labels if request.balanced else np.zeros_like(labels), request, partitions)
    found: list[tuple[Indices, Outcome]] = []
    with request.progress.task("picking in parts", total=len(sizes)) as advance:
        for part, size in enumerate(sizes.tolist()):
            members = np.flatnonzero(part_of == part)
            start = np.searchsorted(members, first[part_of[first] == part])
            found.append((members, _of_part(method, engine, request, options, members, size, start)))
            advance(1)
    outcomes = [outcome for _, outcome in found]
    picked = np.concatenate([members[outcome.indices] for members, outcome in found])
    gains = np.concatenate([outcome.gains for outcome in outcomes])
    order = np.argsort(picked)
    among = picked[order]
    asked = replace(request, initial=np.searchsorted(among, first))
    order = order[keep_best(gains[order], labels[among], asked, keep="highest").indices]
    weights = [outcome.weights for outcome in outcomes if outcome.weights is not None]
    notes = dict.fromkeys(note for outcome in outcomes for note in outcome.notes)
    how = f"Approximate: picked in {len(sizes)} parts, of which each gave its share; gains and scores are those there."
    return Outcome(
        indices=picked[order],
        gains=gains[order],
        confidence=spread([(members, outcome.confidence) for members, outcome in found], len(labels)),
        scores=spread([(members, outcome.scores) for members, outcome in found], len(labels)),
        weights=np.concatenate(weights)[order] if weights else None,
        options=_agreed(outcomes, method.options | options),
        stats={"partitions": len(sizes), "approximate": True, "parts": [outcome.stats for outcome in outcomes]},
        notes=(*notes, how),
    )


def deal(groups: Indices, request: Request, partitions: int) -> tuple[Indices, Indices]:
    """Deal the examples of every group to parts in turn, like cards, shuffled but for the initial picks, which lead.

    If every part then goes round the groups by itself, all together do: what a group gets is what it would get from
    one who holds all cards. There are no more parts than rounds.

    Parameters
    ----------
    groups
        (n,) what to go round.

    Returns
    -------
    part_of, sizes
        (n,) part of every example, and (p,) how many each part picks, initial picks included.

    Examples
    --------
    >>> part_of, sizes = deal(np.array([0, 0, 0, 0, 1, 1, 2]), Request(size=5), 2)
    >>> [np.bincount(np.array([0, 0, 0, 0, 1, 1, 2])[part_of == part]).tolist() for part in (0, 1)], sizes.tolist()
    ([[2, 1, 1], [2, 1]], [3, 2])
    """
    n, first = len(groups), request.first
    shuffled = np.random.default_rng(request.seed).permutation(n)
    order = np.concatenate([first, shuffled[~np.isin(shuffled, first)]])
    turn = rounds(groups[order])
    wanted = np.lexsort((groups[order], turn, np.arange(n) >= len(first)))[: request.size]
    parts = min(partitions, int(turn[wanted].max()) + 1)
    part_of = np.empty(n, dtype=np.int64)
    part_of[order] = turn % parts
    return part_of, np.bincount(turn[wanted] % parts, minlength=parts)


def _of_part(
    method: Method,
    engine: Engine,
    request: Request,
    options: dict[str, Any],
    members: Indices,
    size: int,
    start: Indices | None = None,
) -> Outcome:
    """Let a method pick among the members alone, from some of them on."""
    initial = start if start is not None and start.size else None
    asked = replace(request, size=size, initial=initial, partitions=None, progress=Progress())
    return _pick_among(method, engine, members, asked, options)


def _pick_among(method: Method, engine: Engine, members: Indices, request: Request, options: dict[str, Any]) -> Outcome:
    """Let a method pick among the members alone; what it wants in this process, and is elsewhere, is brought here."""
    part = engine.only(members)
    if not _runs_on(part, method):
        absent = method.signals & set(part.present) - set(part.signals.arrays())
        long: dict[str, Any] = {name: engine.rows(name, members) for name in absent}
        part = LocalEngine(replace(part.signals, **long))
        request = replace(request, device=part.device("auto"))
    return _serve(method, part, request, options)


def _agreed(outcomes: list[Outcome], asked: dict[str, Any]) -> dict[str, Any]:
    """Options as they were resolved, or as they were asked for where parts came to different ends."""
    return {
        name: value if all(other.options[name] == value for other in outcomes) else asked.get(name, value)
        for name, value in outcomes[0].options.items()
    }


def spread(pieces: Iterable[tuple[Indices, NDArray[np.float64] | None]], n: int) -> NDArray[np.float64] | None:
    """(n,) values of some rows in their places, NaN elsewhere; None where values are missing."""
    result = np.full(n, np.nan)
    for rows, values in pieces:
        if values is None:
            return None
        result[rows] = values
    return result
