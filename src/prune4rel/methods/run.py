"""`select`: check what is asked, run the method, and sign the result."""

import math
import time
from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError, nearest
from prune4rel.machine import resolve_device
from prune4rel.methods.registry import Method, Outcome, Request, get
from prune4rel.progress import PlainProgress, Progress
from prune4rel.provenance import Fingerprints, versions
from prune4rel.selection import Selection
from prune4rel.signals import Signals

if TYPE_CHECKING:
    from prune4rel.engines.ray.sources import Sources

Indices = NDArray[np.int64]
Engine = Literal["local", "ray"]
ENGINES: tuple[str, ...] = get_args(Engine)

PROVIDERS = {
    "embeddings": "the feature vectors of a warmed-up model",
    "probabilities": "the softmax outputs of a warmed-up model",
    "losses": "the cross-entropy of every example",
    "forgetting": "how often every example was forgotten during training, infinity where it was never learnt",
    "grad_norms": "the last layer's gradient norm of every example, averaged over warm-ups",
    "el2n": "the error norm of every example, averaged over warm-ups",
    "aum": "the area under the margin of every example",
    "scores": "a score of your own for every example",
    "ssl_embeddings": "the feature vectors of a self-supervised model",
}
"""What each signal is, for the message that one is missing."""


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
    engine: Engine = "local",
    ray_address: str | None = None,
    work_dir: str | Path | None = None,
    partitions: int | None = None,
    ann: bool = False,
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
    engine
        ``"local"``, or ``"ray"`` for a Ray cluster, with the same picks. Then signals and arrays may also be paths or
        URLs of shards, which are never brought together on one machine.
    ray_address
        With Ray: address of a running cluster. None starts Ray on this machine, for this machine alone.
    work_dir
        With Ray: folder that keeps finished parts of the graph, so that a run that was interrupted goes on.
    partitions
        With Ray: select in so many parts first, and among their picks then. Approximate.
    ann
        With Ray: look for neighbours in the likeliest places only. Approximate.
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
    if balanced and not chosen.balances:
        raise InputError(f"method {method!r} cannot be balanced over the classes; leave balanced out")
    listener = PlainProgress() if progress is True else progress or Progress()
    asked = Request(size=0, balanced=balanced, seed=_seed(seed), device=device, progress=listener)
    if engine == "ray":
        from prune4rel.engines.ray.engine import Settings, ray_engine  # noqa: PLC0415 - only for those who ask for it

        if signals is not None:
            _refuse_both(arrays)
        settings = Settings(address=ray_address, work_dir=work_dir, partitions=partitions, ann=ann)
        with ray_engine(settings, signals, arrays) as cluster:
            found = cluster.sources
            _require(chosen, found.names)
            rows = found.small.readable_rows
            count = _count(len(found), ratio, size, len(rows))
            some = found if len(rows) == len(found) else found.only(rows)
            cluster = replace(cluster, sources=some)  # noqa: PLW2901 - the same cluster
            request = replace(asked, size=count, device=cluster.device(device))
            outcome, prints = cluster.run(chosen, request, _among_readable(options, rows, len(found)))
            used = {name: array for name, array in found.small.arrays().items() if name in _wanted(chosen)}
            prints = Fingerprints(used).result() | prints
        return _among_all(_signed(method, some, request, outcome, prints, begin), rows, len(found))
    _refuse_ray(engine, ray_address=ray_address, work_dir=work_dir, partitions=partitions, ann=ann or None)
    signals = _as_signals(signals, arrays)
    _require(chosen, signals.arrays())
    rows = signals.readable_rows
    count = _count(len(signals), ratio, size, len(rows))
    readable = signals if len(rows) == len(signals) else signals.only(rows)
    request = replace(asked, size=count, device=resolve_device(device, pairwise_work(signals)))
    background = Fingerprints({name: array for name, array in signals.arrays().items() if name in _wanted(chosen)})
    try:
        outcome = chosen.run(readable, request, **_among_readable(options, rows, len(signals)))
        prints = background.result()
    finally:
        background.cancel()
    return _among_all(_signed(method, readable, request, outcome, prints, begin), rows, len(signals))


def _among_readable(options: dict[str, Any], rows: Indices, n: int) -> dict[str, Any]:
    """Give examples that an option names the numbers they have among those that could be read."""
    if len(rows) == n or options.get("initial") is None:
        return options
    initial = np.asarray(options["initial"])
    if initial.dtype.kind in "iu" and ((initial >= 0) & (initial < n)).all():
        unread = initial[~np.isin(initial, rows)]
        if unread.size:
            raise InputError(f"initial: holds example {unread[0]}, which could not be read", "initial")
        initial = np.searchsorted(rows, initial)
    return {**options, "initial": initial}


def _among_all(chosen: Selection, rows: Indices, n: int) -> Selection:
    """Give picks and scores their numbers among all n examples, and say how many could not be read."""
    if len(rows) == n:
        return chosen
    scores = None
    if chosen.scores is not None:
        scores = np.full(n, np.nan)
        scores[rows] = chosen.scores
    options = dict(chosen.options)
    if options.get("initial") is not None:
        options["initial"] = rows[options["initial"]].tolist()
    note = f"{n - len(rows):,} of {n:,} examples could not be read and were not picked"
    notes = (*chosen.notes, note)
    return replace(chosen, indices=rows[chosen.indices], n=n, scores=scores, options=options, notes=notes)


def _signed(
    method: str,
    signals: "Signals | Sources",
    request: Request,
    outcome: Outcome,
    prints: dict[str, str],
    begin: float,
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
            names = sorted({*known, *fields, "ratio", "size", "balanced", "seed", "device"})
            raise InputError(f"method {method.name!r} has no option or signal {name!r}; {nearest(name, names)}")
    arrays = {name: value for name, value in inputs.items() if name in fields and value is not None}
    options = {name: value for name, value in inputs.items() if name in known}
    for name, value in options.items():
        if isinstance(known[name], bool) and not isinstance(value, bool | np.bool_):
            raise InputError(f"method {method.name!r}: {name} must be true or false, not {value!r}")
    return arrays, options


def _as_signals(signals: Signals | str | Path | None, arrays: dict[str, Any]) -> Signals:
    if signals is None:
        if "labels" not in arrays:
            raise InputError("labels are missing: pass labels=, or signals=", "labels")
        return Signals(**arrays)
    _refuse_both(arrays)
    return signals if isinstance(signals, Signals) else Signals.load(signals)


def _refuse_both(arrays: dict[str, Any]) -> None:
    if arrays:
        raise InputError(f"pass either signals or arrays, not both (got signals and {', '.join(arrays)})")


def _refuse_ray(engine: str, **settings: object) -> None:
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}; {nearest(str(engine), ENGINES)}")
    for name, value in settings.items():
        if value is not None:
            raise InputError(f"{name} is for engine='ray' (--engine ray); add that, or leave {name} out")


def _wanted(method: Method) -> set[str]:
    return {"labels", "known", *(name for need in method.needs for name in need.split("|"))}


def _require(method: Method, present: Container[str]) -> None:
    for need in method.needs:
        names = need.split("|")
        if not any(name in present for name in names):
            how = ", or ".join(f"{PROVIDERS[name]} ({name}=, --signal {name}=FILE)" for name in names)
            raise InputError(
                f"method {method.name!r} needs the signal {' or '.join(names)}, which is missing: pass {how}"
            )


def pairwise_work(signals: Signals) -> float:
    """Multiplications it takes to compare all pairs of examples."""
    return 0.0 if signals.embeddings is None else float(len(signals)) ** 2 * signals.embeddings.shape[1]


def _count(n: int, ratio: float | None, size: int | None, readable: int) -> int:
    """Return how many examples of n to pick, where so many could be read."""
    if not readable:
        raise InputError(f"none of the {n} examples could be read; there is nothing to select from")
    if (ratio is None) == (size is None):
        raise InputError("give either ratio or size, and only one of them")
    if ratio is not None:
        if not (isinstance(ratio, int | float | np.number) and math.isfinite(ratio) and 0 < ratio <= 1):
            raise InputError(f"ratio must be above 0 and at most 1, not {ratio!r}")
        count = round(n * ratio)
        if count == 0:
            raise InputError(f"ratio {ratio} of {n} examples is less than one example; use a larger one, or size=1")
        return min(count, readable)
    if not isinstance(size, int | np.integer) or size < 1:
        raise InputError(f"size must be a whole number of at least 1, not {size!r}")
    if size > n:
        raise InputError(f"size {size} is more than the {n} examples there are")
    if size > readable:
        raise InputError(f"size {size} is more than the {readable} of {n} examples that could be read")
    return int(size)


def _seed(seed: int) -> int:
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, not {seed!r}")
    return int(seed)
