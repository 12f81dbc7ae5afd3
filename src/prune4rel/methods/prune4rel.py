"""Prune4ReL: the subset whose picks lend the most confidence to the most neighbours."""

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.blocks import map_blocks
from prune4rel.errors import InputError, nearest
from prune4rel.greedy import Picks
from prune4rel.greedy.lazy import GAINS, Gain
from prune4rel.greedy.plan import Plan, compile_loops
from prune4rel.machine import Clock, available_memory, parse_bytes
from prune4rel.methods.registry import Outcome, Request, register_method
from prune4rel.neighbours.build import TARGET_DEGREE, Neighbourhood, check_zero_rows, neighbourhood
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import SIMILARITIES, Points, Similarity
from prune4rel.progress import Progress
from prune4rel.signals import Signals

Confidence = Literal["max-prob", "diff-prob", "label-prob"]
CONFIDENCES: tuple[str, ...] = get_args(Confidence)
Preset = Literal["paper", "official", "coverage", "label-aware"]

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"gain": "paper", "similarity": "cosine", "confidence": "max-prob", "tau": 0.975, "strict": False},
    "official": {
        "gain": "paper",
        "similarity": "shifted-cosine",
        "confidence": "max-prob",
        "tau": 0.975,
        "strict": True,
    },
    "coverage": {
        "gain": "coverage",
        "similarity": "shifted-cosine",
        "confidence": "max-prob",
        "tau": "auto",
        "strict": False,
    },
    "label-aware": {
        "gain": "coverage",
        "similarity": "shifted-cosine",
        "confidence": "label-prob",
        "tau": "auto",
        "strict": False,
    },
}
"""What each preset sets; every entry can be overridden by the option of the same name."""

MEMORY_SHARE = 0.6
FLOAT32_EPS = 2.0**-24
SMALLEST_ETA = 1e-290


@register_method(
    "prune4rel",
    needs=("embeddings", "probabilities"),
    cost="n²d/2 multiplications at most, then about |edges| log n",
    citation="Park, Choi, Kim, Song, Lee: Robust Data Pruning under Label Noise via Maximizing Re-labeling "
    "Accuracy. NeurIPS 2023",
)
def prune4rel(
    signals: Signals,
    request: Request,
    *,
    preset: Preset = "label-aware",
    tau: float | Literal["auto"] | None = None,
    gain: Gain | None = None,
    similarity: Similarity | None = None,
    confidence: Confidence | None = None,
    strict: bool | None = None,
    eta: float = 1.0,
    target_degree: float = TARGET_DEGREE,
    max_degree: int | None = None,
    initial: ArrayLike | None = None,
    allow_zero: bool = False,
    screening: Screening = "auto",
    memory: str | int | None = None,
) -> Outcome:
    """Maximise the confidence that the subset lends to the neighbourhoods of all examples.

    Parameters
    ----------
    preset
        ``"label-aware"`` (recommended), ``"coverage"``, ``"official"`` or ``"paper"``: defaults for the next
        five options.
    tau
        Similarity from which two examples are neighbours, 0 to 1; ``"auto"`` finds the one at which examples
        have `target_degree` neighbours on average.
    gain
        ``"coverage"``: true gain of the objective, within 1 - 1/e of the optimum; ``"paper"``: the score of
        the paper's algorithms.
    similarity
        ``"cosine"``, or ``"shifted-cosine"``, (1 + cosine) / 2.
    confidence
        ``"max-prob"``, ``"diff-prob"`` (highest minus second) or ``"label-prob"`` (of the given label).
    strict
        Neighbours need a similarity above tau, not just equal to it.
    eta
        Temperature of the utility tanh(N / eta); larger values saturate later.
    max_degree
        Keep only this many of each example's heaviest edges (and those others keep to it). Approximate.
    initial
        Indices that count as picked before the start; they lead the result and count towards its size.
    allow_zero
        Treat all-zero embeddings as isolated instead of refusing them.
    screening
        ``"auto"``, ``"projection"`` or ``"none"``: how pairs are ruled out early. Never changes the picks.
    memory
        Memory the graph may take, such as ``"8GB"``; by default 60 % of what is available.
    """
    compile_loops(request.progress)
    clock = Clock()
    chosen = resolve_options(preset, tau=tau, gain=gain, similarity=similarity, confidence=confidence, strict=strict)
    scaled = confidence_of(signals, chosen["confidence"]) / check_eta(eta)
    start = check_initial(initial, request.size, len(signals))
    near = _look_around(signals, request.device, chosen, target_degree, screening, allow_zero=allow_zero)
    clock.lap("estimate")
    request.progress.say(near.estimate.describe())
    plan = Plan(
        near,
        scaled,
        request.size,
        gain=chosen["gain"],
        groups=signals.labels if request.balanced else None,
        initial=start,
        budget=memory_budget(memory),
        max_degree=None if max_degree is None else at_least_one(max_degree, "max_degree"),
    )
    picks, facts = plan.run(request.progress, clock)
    stats = {
        "mean_degree": near.estimate.mean_degree,
        "isolated": near.estimate.isolated,
        "zero_gain_picks": float((picks.gains < FLOAT32_EPS).mean()),
        "screen_width": near.estimate.screen_width,
        **facts,
        "seconds": clock.laps,
    }
    return Outcome(
        indices=picks.indices,
        gains=picks.gains,
        objective=picks.objective,
        confidence=scaled * eta,
        options=chosen
        | {
            "preset": preset,
            "tau": near.threshold.tau,
            "eta": eta,
            "max_degree": max_degree,
            "initial": None if start is None else start.tolist(),
            "allow_zero": allow_zero,
        },
        stats=stats,
        notes=notes_on(stats, signals, picks, balanced=request.balanced),
    )


def look_ahead(
    signals: Signals,
    *,
    device: str,
    preset: Preset = "label-aware",
    tau: float | Literal["auto"] | None = None,
    gain: Gain | None = None,
    similarity: Similarity | None = None,
    confidence: Confidence | None = None,
    strict: bool | None = None,
    target_degree: float = TARGET_DEGREE,
    allow_zero: bool = False,
    screening: Screening = "auto",
    **_: Any,
) -> Neighbourhood:
    """Estimate what a selection with these options would take, without making it."""
    compile_loops(Progress())
    chosen = resolve_options(preset, tau=tau, gain=gain, similarity=similarity, confidence=confidence, strict=strict)
    return _look_around(signals, device, chosen, target_degree, screening, allow_zero=allow_zero)


def _look_around(
    signals: Signals,
    device: str,
    chosen: dict[str, Any],
    target_degree: float,
    screening: Screening,
    *,
    allow_zero: bool,
) -> Neighbourhood:
    if signals.embeddings is None:
        raise AssertionError("select checks for missing signals")
    squares = signals.squared_norms["embeddings"]
    check_zero_rows(squares, allow=allow_zero)
    return neighbourhood(
        Points(signals.embeddings, squares),
        tau=chosen["tau"],
        similarity=chosen["similarity"],
        strict=chosen["strict"],
        target_degree=target_degree,
        device=device,
        screening=screening,
    )


def resolve_options(preset: str, **overrides: Any) -> dict[str, Any]:
    """Return the preset's settings with the given ones in their place."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, PRESETS)}")
    chosen = PRESETS[preset] | {name: value for name, value in overrides.items() if value is not None}
    for name, known in (("gain", GAINS), ("similarity", SIMILARITIES), ("confidence", CONFIDENCES)):
        if chosen[name] not in known:
            raise InputError(f"unknown {name} {chosen[name]!r}; {nearest(chosen[name], known)}")
    if not isinstance(chosen["strict"], bool | np.bool_):
        raise InputError(f"strict must be true or false, not {chosen['strict']!r}")
    if chosen["tau"] != "auto" and not isinstance(chosen["tau"], int | float | np.number):
        raise InputError(f"tau must lie between 0 and 1, or be 'auto'; got {chosen['tau']!r}")
    if chosen["tau"] != "auto":
        chosen["tau"] = float(chosen["tau"])
    return chosen


def confidence_of(signals: Signals, kind: str) -> NDArray[np.float64]:
    """(n,) confidence in every example, 0 to 1, higher is surer.

    >>> signals = Signals(labels=[1], probabilities=[[0.7, 0.2, 0.1]])
    >>> [round(float(confidence_of(signals, kind)[0]), 3) for kind in CONFIDENCES]
    [0.7, 0.5, 0.2]
    """
    probabilities = signals.probabilities
    if probabilities is None:
        raise AssertionError("select checks for missing signals")

    def block(start: int, stop: int) -> NDArray[np.float64]:
        rows = np.asarray(probabilities[start:stop], dtype=np.float64)
        if kind == "label-prob":
            mine: NDArray[np.float64] = rows[np.arange(stop - start), signals.labels[start:stop]]
            return mine
        if kind == "max-prob" or rows.shape[1] == 1:
            highest: NDArray[np.float64] = rows.max(axis=1)
            return highest
        top = np.partition(rows, rows.shape[1] - 2, axis=1)[:, -2:]
        return top[:, 1] - top[:, 0]

    return np.concatenate(map_blocks(block, len(signals), probabilities.shape[1]))


def memory_budget(memory: str | float | None) -> int:
    """Bytes the graph may take."""
    if memory is None:
        return int(MEMORY_SHARE * available_memory())
    try:
        return parse_bytes(memory)
    except InputError as error:
        raise InputError(f"memory: {error}") from None


def check_eta(eta: float) -> float:
    """Return the temperature, or refuse one that is no number above 0."""
    if not (isinstance(eta, int | float | np.number) and math.isfinite(eta) and eta > 0):
        raise InputError(f"eta must be a number above 0, not {eta!r}")
    if eta < SMALLEST_ETA:
        raise InputError(f"eta must be {SMALLEST_ETA} or more, not {eta!r}: confidence / eta would overflow")
    return float(eta)


def at_least_one(value: int, name: str) -> int:
    """Return a count, or refuse one below 1."""
    if not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    return int(value)


def check_initial(initial: ArrayLike | None, size: int, n: int) -> NDArray[np.int64] | None:
    """Return the picks to start from, or refuse ones that cannot be; None for none."""
    if initial is None:
        return None
    start = np.asarray(initial)
    if start.size == 0:
        return None
    if start.ndim != 1 or start.dtype.kind not in "iu":
        raise InputError("initial must be a list of indices")
    if start.min() < 0 or start.max() >= n:
        raise InputError(f"initial holds an index outside 0 to {n - 1}")
    if len(np.unique(start)) < len(start):
        raise InputError("initial names an example twice")
    if len(start) > size:
        raise InputError(f"initial holds {len(start)} examples, more than the {size} to select in all")
    return start.astype(np.int64)


def notes_on(stats: dict[str, Any], signals: Signals, picks: Picks, *, balanced: bool) -> tuple[str, ...]:
    """Sentences on what looks odd, each with what to do."""
    notes = []
    n = len(signals)
    if stats["isolated"] > 0.5:
        notes.append(
            f"{stats['isolated']:.0%} of the examples have no neighbour at this tau, so picks hardly speak for others; "
            "lower tau or use tau='auto'."
        )
    if stats["mean_degree"] > max(50.0, 0.1 * n):
        notes.append(
            f"An example has {stats['mean_degree']:.0f} neighbours on average, more than a tenth of the set; "
            "raise tau or use tau='auto'."
        )
    if stats["zero_gain_picks"] > 0.05:
        notes.append(
            f"{stats['zero_gain_picks']:.0%} of the picks gained next to nothing (below 6e-8): "
            "the set was covered before; raise tau, or a smaller subset would do."
        )
    if stats.get("approximate"):
        notes.append(f"Approximate: max_degree left out {stats['edges_left_out']} edges.")
    counts = np.bincount(signals.labels[picks.indices], minlength=signals.n_classes)
    present = np.bincount(signals.labels, minlength=signals.n_classes) > 0
    if not balanced and present.sum() > 1 and counts[present].min() * 4 < counts[present].max():
        notes.append(
            f"Classes got between {counts[present].min()} and {counts[present].max()} picks; "
            "balanced=True (--balanced) goes round the classes."
        )
    return tuple(notes)
