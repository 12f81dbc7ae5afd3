"""`select`: check what is asked, find who serves it, run the method, and sign the result."""

import math
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.engines.engine import open_engine
from prune4rel.engines.local import LocalEngine, share_of
from prune4rel.errors import InputError, nearest
from prune4rel.methods.checks import indices_below, whole
from prune4rel.methods.method import Method, Outcome, Request, get
from prune4rel.methods.serve import run_method, spread
from prune4rel.neighbours.build import Estimate, Neighbourhood
from prune4rel.progress import PlainProgress, Progress
from prune4rel.provenance import versions
from prune4rel.selection import Selection
from prune4rel.signals import Signals, declared_signals

Indices = NDArray[np.int64]

NEIGHBOURS = ("auto", "exact", "approximate")


def select(
    method: str = "prune4rel",
    signals: Signals | str | Path | None = None,
    *,
    ratio: float | None = None,
    size: int | None = None,
    balanced: bool = False,
    seed: int = 0,
    device: str = "auto",
    progress: bool | Progress = False,
    initial: ArrayLike | None = None,
    partitions: int | None = None,
    engine: str = "local",
    ray_address: str | None = None,
    work_dir: str | Path | None = None,
    ann: bool = False,
    ann_share: float | None = None,
    neighbours: str = "auto",
    **inputs: Any,
) -> Selection:
    """Choose a subset of the training examples.

    Parameters
    ----------
    method
        One of `prune4rel.list_methods()`.
    signals
        A `Signals`, or the path of a saved one; or leave it out and pass its arrays by name
        (``embeddings=``, ``probabilities=``, ``labels=``, ...).
    ratio, size
        How many: a share of the examples (size = round(n * ratio)), or a number. Give one of them.
    balanced
        Go round the (noisy) classes, so that each gets the same number of picks while it lasts.
    seed
        For methods that draw at random; others ignore it.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``. The picks do not depend on it.
    progress
        True for lines on standard error, or a `Progress` of your own.
    initial
        Indices that count as picked before the start; they lead the result and count towards its size.
    partitions
        Select in so many parts, dealt at random, and among their picks then; methods whose scores or weights compare
        an example with all others select a share in every part instead. Approximate, rankings by each example's own
        row aside.
    engine
        ``"local"``, or ``"ray"`` for a Ray cluster, with the same picks. Then signals and arrays may also be paths or
        URLs of shards, which are never brought together on one machine.
    ray_address
        With Ray: address of a running cluster. None starts Ray on this machine, for this machine alone.
    work_dir
        With Ray: folder that keeps finished parts of the graph, so that a run that was interrupted goes on.
    ann
        Look for neighbours in likely places only. Approximate: the share of them that is found is measured on rows of
        a sample and said in `stats` and `notes`.
    ann_share
        The share of the neighbours that `ann` aims at, between 0 and 1 (0.97); given alone, it asks for `ann`.
    neighbours
        ``"exact"``, ``"approximate"`` (the same as `ann`), or ``"auto"``: exact, but the estimate names the shortcut
        where the exact way takes more than ten minutes.
    **inputs
        Arrays of `Signals`, and options of the method.

    Returns
    -------
    Selection
        `indices` (s,) in pick order, `gains` (s,) with higher better, `objective`, statistics, provenance.

    Examples
    --------
    Two tight pairs and a loner; the coverage gain takes one of each pair before anything else.

    >>> import numpy as np
    >>> embeddings = np.array([[1, 0, 0], [1, 0.1, 0], [0, 1, 0], [0, 1, 0.1], [0, 0, 1]])
    >>> probabilities = np.full((5, 2), 0.5)
    >>> chosen = select("prune4rel", embeddings=embeddings, probabilities=probabilities,
    ...                 labels=[0, 0, 1, 1, 0], size=2, tau=0.975, preset="coverage")
    >>> chosen.indices
    array([0, 2])
    """
    begin = time.perf_counter()
    chosen = get(method)
    arrays, options = _split(chosen, inputs)
    _check_able(chosen, options, balanced=balanced, initial=initial, partitions=partitions)
    listener = PlainProgress() if progress is True else progress or Progress()
    asked = Request(
        size=0, balanced=balanced, seed=whole(seed, "seed", least=0), progress=listener, partitions=partitions
    )
    likely = _likely(neighbours, ann, ann_share)
    settings = {"ray_address": ray_address, "work_dir": work_dir, "ann": likely, "ann_share": ann_share}
    settings["ann_seed"] = asked.seed if likely else None
    with open_engine(engine, signals, arrays, **settings) as everyone:
        _require(chosen, everyone.present)
        if everyone.approximate and not {"neighbours", "nearest"} & {*chosen.asks}:
            raise InputError(f"ann is for methods that look for neighbours, and {method!r} does not; leave it out")
        n = len(everyone.signals)
        rows = everyone.signals.readable_rows
        count = _count(n, ratio, size, len(rows))
        start = _check_initial(initial, count, rows, n)
        for name in chosen.points_at:
            if not isinstance(options.get(name, ""), str) and len(rows) < n:
                options[name] = np.searchsorted(rows, _readable(options[name], name, rows, n))
        served = everyone if len(rows) == n else everyone.only(rows)
        request = replace(
            asked,
            size=count,
            device=everyone.device(device),
            engine=served,
            initial=None if start is None else np.searchsorted(rows, start),
        )
        everyone.start_fingerprints(chosen.signals)
        outcome = run_method(chosen, served, request, options)
        outcome = replace(outcome, stats=outcome.stats | served.facts(), notes=(*outcome.notes, *served.notes()))
        prints = everyone.fingerprints()
    if start is not None:
        outcome.options["initial"] = start.tolist()
    if partitions is not None:
        outcome.options["partitions"] = int(partitions)
    return _among_all(_signed(method, served.signals, request, outcome, prints, begin), rows, n)


def _likely(neighbours: str, ann: bool, share: float | None) -> bool:
    """Tell whether neighbours are to be looked for in likely places only."""
    if neighbours not in NEIGHBOURS:
        raise InputError(f"neighbours must be one of {', '.join(NEIGHBOURS)}, not {neighbours!r}")
    if neighbours == "exact" and (ann or share is not None):
        raise InputError("neighbours='exact' and ann exclude each other; leave one of them out")
    return ann or share is not None or neighbours == "approximate"


def estimate(
    method: str,
    signals: Signals,
    *,
    device: str = "auto",
    ann: bool = False,
    ann_share: float | None = None,
    **options: Any,
) -> Estimate | None:
    """Estimate the neighbour graph that a selection would build, without building it; None where it builds none."""
    chosen = get(method)
    _require(chosen, signals.arrays())
    if "neighbours" not in chosen.asks:
        return None
    share = share_of(ann=ann, ann_share=ann_share)
    engine = _OnlyEstimates(signals.only(signals.readable_rows), share)
    request = Request(size=len(engine.signals), device=engine.device(device), engine=engine)
    try:
        chosen.run(engine.signals, request, **options)
    except _Estimated as found:
        return found.near.estimate
    return None


class _Estimated(Exception):  # noqa: N818 - no error: there is nothing more to do
    def __init__(self, near: Neighbourhood) -> None:
        super().__init__()
        self.near = near


class _OnlyEstimates(LocalEngine):
    """Serves a method up to the moment at which it knows what its graph will take."""

    def neighbourhood(self, **options: Any) -> NoReturn:
        """Stop the method here."""
        raise _Estimated(super().neighbourhood(**options))


def _among_all(chosen: Selection, rows: Indices, n: int) -> Selection:
    """Give picks and scores their numbers among all n examples, and say how many could not be read."""
    if len(rows) == n:
        return chosen
    note = f"{n - len(rows):,} of {n:,} examples could not be read and were not picked"
    scores = spread([(rows, chosen.scores)], n)
    return replace(chosen, indices=rows[chosen.indices], n=n, scores=scores, notes=(*chosen.notes, note))


def _signed(
    method: str, signals: Signals, request: Request, outcome: Outcome, prints: dict[str, str], begin: float
) -> Selection:
    """Add to a method's answer what every selection says of itself."""
    picked = outcome.indices
    common = {
        "size": request.size,
        "balanced": request.balanced,
        "seed": request.seed,
        "device": request.device,
    }
    counts = np.bincount(signals.labels[picked], minlength=signals.n_classes)
    timings = outcome.stats.pop("seconds", {}) | {"total": time.perf_counter() - begin}
    return Selection(
        indices=picked,
        gains=outcome.gains,
        objective=outcome.objective,
        n=len(signals),
        method=method,
        options=common | outcome.options,
        stats=outcome.stats | {"class_counts": counts.tolist(), "seconds": timings},
        provenance={"versions": versions(), "sha256": prints},
        labels=signals.labels[picked],
        confidence=None if outcome.confidence is None else outcome.confidence[picked],
        ids=None if signals.ids is None else signals.ids[picked],
        scores=outcome.scores,
        notes=outcome.notes,
        weights=outcome.weights,
    )


def _split(method: Method, inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell arrays from options; refuse what is neither."""
    fields = {name for name, f in Signals.__dataclass_fields__.items() if f.init}
    known = method.options
    for name in inputs:
        if name not in fields and name not in known:
            names = sorted({*known, *fields, "ratio", "size", "balanced", "seed", "device", "partitions"})
            raise InputError(f"method {method.name!r} has no option or signal {name!r}; {nearest(name, names)}")
    arrays = {name: value for name, value in inputs.items() if name in fields and value is not None}
    options = {name: value for name, value in inputs.items() if name in known}
    for name, value in options.items():
        if isinstance(known[name], bool) and not isinstance(value, bool | np.bool_):
            raise InputError(f"method {method.name!r}: {name} must be true or false, not {value!r}")
    return arrays, options


def _check_able(
    method: Method,
    options: dict[str, Any],
    *,
    balanced: bool,
    initial: ArrayLike | None,
    partitions: int | None,
) -> None:
    """Refuse what the method cannot do."""
    name = method.name
    if balanced and not method.balances:
        raise InputError(f"method {name!r} cannot be balanced over the classes; leave balanced out")
    if initial is not None and not method.extends:
        raise InputError(f"method {name!r} is not registered with extends=True; leave initial out")
    if partitions is None:
        return
    whole(partitions, "partitions", least=2)
    if method.in_parts == "never":
        raise InputError(f"method {name!r} is registered with in_parts='never'; leave partitions out")
    if named := [option for option in method.points_at if not isinstance(options.get(option, ""), str)]:
        raise InputError(f"{named[0]} names examples, which partitions deal apart; leave one of the two out")


def _check_initial(initial: ArrayLike | None, size: int, rows: Indices, n: int) -> Indices | None:
    """Return the picks to start from, or refuse ones that cannot be; None for none."""
    if initial is None or np.size(initial) == 0:
        return None
    start = _readable(initial, "initial", rows, n)
    if len(np.unique(start)) < len(start):
        raise InputError("initial names an example twice")
    if len(start) > size:
        raise InputError(f"initial holds {len(start)} examples, more than the {size} to select in all")
    return start


def _readable(value: ArrayLike, name: str, rows: Indices, n: int) -> Indices:
    """Return numbers of examples of n, or refuse ones that are not among the (r,) readable rows."""
    found = indices_below(value, name, n)
    if (unread := found[~np.isin(found, rows)]).size:
        raise InputError(f"{name}: holds example {unread[0]}, which could not be read", name)
    return found


def _require(method: Method, present: Collection[str]) -> None:
    for need in method.needs:
        names = need.split("|")
        if not any(name in present for name in names):
            known = declared_signals()
            how = ", or ".join(f"{known[name]['about']} ({name}=, --signal {name}=FILE)" for name in names)
            raise InputError(
                f"method {method.name!r} needs the signal {' or '.join(names)}, which is missing: pass {how}"
            )


def _count(n: int, ratio: float | None, size: int | None, readable: int) -> int:
    """Return how many examples of n to pick, where so many could be read."""
    if not readable:
        raise InputError(f"none of the {n} examples could be read; there is nothing to select from")
    if (ratio is None) == (size is None):
        raise InputError("give either ratio or size, and only one of them")
    if size is not None:
        wanted = whole(size, "size")
        if wanted > n:
            raise InputError(f"size {size} is more than the {n} examples there are")
        if wanted > readable:
            raise InputError(f"size {size} is more than the {readable} of {n} examples that could be read")
        return wanted
    if not (isinstance(ratio, int | float | np.number) and math.isfinite(ratio) and 0 < ratio <= 1):
        raise InputError(f"ratio must be above 0 and at most 1, not {ratio!r}")
    count = round(n * ratio)
    if count == 0:
        raise InputError(f"ratio {ratio} of {n} examples is less than one example; use a larger one, or size=1")
    return min(count, readable)
