"""Prune4ReL: the subset whose picks lend the most confidence to the most neighbours."""

import math
from typing import Any, Literal

import numpy as np

from prune4rel.errors import InputError, nearest
from prune4rel.greedy.lazy import GAINS, Gain, Picks
from prune4rel.greedy.memory import compile_loops, pick_in_memory
from prune4rel.greedy.partitions import EdgeList, pick_in_parts
from prune4rel.machine import Clock, memory_budget
from prune4rel.methods.checks import check_tau, one_of, whole
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import CONFIDENCES, Confidence, confidence_of_rows
from prune4rel.neighbours.build import TARGET_DEGREE
from prune4rel.neighbours.screen import Screening
from prune4rel.neighbours.similarity import SIMILARITIES, Similarity
from prune4rel.signals import Signals

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

FLOAT32_EPS = 2.0**-24
SMALLEST_ETA = 1e-290


@register_method(
    "prune4rel",
    needs=("embeddings", "probabilities"),
    cost="n²d/2 multiplications at most, then about |edges| log n",
    citation="Park, Choi, Kim, Song, Lee: Robust Data Pruning under Label Noise via Maximizing Re-labeling "
    "Accuracy. NeurIPS 2023",
    asks=("rows", "neighbours", "parts"),
    extends=True,
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
    allow_zero: bool = False,
    screening: Screening = "auto",
    memory: str | int | None = None,
) -> Outcome:
    """Maximise the confidence that the subset lends to the neighbourhoods of all examples.

    Parameters
    ----------
    preset
        ``label-aware`` (the default), ``coverage``, ``official`` or ``paper``. It sets the next five options, unless
        they are given.
    tau
        Similarity that makes neighbours, 0 to 1, or ``auto``. That is the one at which examples have `target_degree`
        neighbours on average.
    gain
        ``coverage`` or ``paper``. The true gain of the objective, within 1 - 1/e of the optimum; or the score of the
        paper's algorithms.
    similarity
        ``shifted-cosine`` or ``cosine``. The former is (1 + cosine) / 2.
    confidence
        ``label-prob``, ``max-prob`` or ``diff-prob``. The probability of the given label, the highest one, or the
        highest minus the second.
    strict
        Neighbours lie above tau, not at it.
    eta
        Temperature of the utility (1). It is tanh(N / eta); larger values saturate later.
    target_degree
        Mean number of neighbours that ``tau="auto"`` aims at (20).
    max_degree
        Keep only the heaviest edges of each example; approximate. So many of them, and those others keep to it.
    allow_zero
        Treat all-zero embeddings as isolated. They are refused otherwise.
    screening
        ``auto``, ``projection`` or ``none``; never changes the picks. It is how pairs are ruled out early.
    memory
        Memory the graph may take, like ``8GB`` (60 % of what is free).
    """
    compile_loops(request.progress)
    clock = Clock()
    chosen = resolve_options(preset, tau=tau, gain=gain, similarity=similarity, confidence=confidence, strict=strict)
    limit = None if max_degree is None else whole(max_degree, "max_degree")
    engine = request.serving(signals)
    if limit is not None and (request.partitions is not None or engine.approximate):
        raise InputError("max_degree cannot be combined with partitions or ann; leave one of them out")
    columns = ("probabilities", "labels")
    scaled = engine.per_example(confidence_of_rows, columns, chosen["confidence"]) / check_eta(eta)
    near = engine.neighbourhood(
        tau=chosen["tau"],
        similarity=chosen["similarity"],
        strict=chosen["strict"],
        target_degree=target_degree,
        screening=screening,
        allow_zero=allow_zero,
        device=request.device,
        progress=request.progress,
    )
    clock.lap("estimate")
    request.progress.say(near.estimate.describe())
    greedy: dict[str, Any] = {
        "gain": chosen["gain"],
        "groups": signals.labels if request.balanced else None,
        "initial": request.initial,
        "budget": memory_budget(memory),
        "progress": request.progress,
    }
    notes: tuple[str, ...] = ()
    if request.partitions is None:
        picks, facts = pick_in_memory(near, scaled, request.size, max_degree=limit, clock=clock, **greedy)
    else:
        parts: dict[str, Any] = {"each": engine.each, "partitions": request.partitions, "seed": request.seed}
        with engine.all_edges(near, request.progress) as edges:
            clock.lap("graph")
            picks, facts, note = pick_in_parts(EdgeList(len(scaled), edges), scaled, request.size, **greedy, **parts)
        clock.lap("greedy")
        notes = (note,)
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
            "initial": None,
            "allow_zero": allow_zero,
        },
        stats=stats,
        notes=(*notes_on(stats, signals, picks, balanced=request.balanced), *notes),
    )


def resolve_options(preset: str, **overrides: Any) -> dict[str, Any]:
    """Return the preset's settings with the given ones in their place."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}; {nearest(preset, PRESETS)}")
    chosen = PRESETS[preset] | {name: value for name, value in overrides.items() if value is not None}
    for name, known in (("gain", GAINS), ("similarity", SIMILARITIES), ("confidence", CONFIDENCES)):
        one_of(chosen[name], name, known)
    if not isinstance(chosen["strict"], bool | np.bool_):
        raise InputError(f"strict must be true or false, not {chosen['strict']!r}")
    return chosen | {"tau": check_tau(chosen["tau"])}


def check_eta(eta: float) -> float:
    """Return the temperature, or refuse one that is no number above 0."""
    if not (isinstance(eta, int | float | np.number) and math.isfinite(eta) and eta > 0):
        raise InputError(f"eta must be a number above 0, not {eta!r}")
    if eta < SMALLEST_ETA:
        raise InputError(f"eta must be {SMALLEST_ETA} or more, not {eta!r}: confidence / eta would overflow")
    return float(eta)


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
    if stats.get("edges_left_out"):
        notes.append(f"Approximate: max_degree left out {stats['edges_left_out']} edges.")
    counts = np.bincount(signals.labels[picks.indices], minlength=signals.n_classes)
    present = np.bincount(signals.labels, minlength=signals.n_classes) > 0
    if not balanced and present.sum() > 1 and counts[present].min() * 4 < counts[present].max():
        notes.append(
            f"Classes got between {counts[present].min()} and {counts[present].max()} picks; "
            "balanced=True (--balanced) goes round the classes."
        )
    return tuple(notes)
