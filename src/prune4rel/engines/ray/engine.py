"""A selection on a Ray cluster, with the picks of one machine."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from prune4rel.engines.ray.ann import ENOUGH, AnnBackend, choose_cells, import_faiss, training_rows
from prune4rel.engines.ray.backend import RayBackend
from prune4rel.engines.ray.cluster import Cluster, connect
from prune4rel.engines.ray.layout import Layout, choose_block
from prune4rel.engines.ray.look import settle, survey
from prune4rel.engines.ray.partitions import pick_in_parts
from prune4rel.engines.ray.scores import SCORED, confidences, score_on_ray
from prune4rel.engines.ray.sources import Sources, gather
from prune4rel.errors import InputError
from prune4rel.greedy import Picks
from prune4rel.greedy.plan import Plan, compile_loops
from prune4rel.machine import Clock
from prune4rel.methods.prune4rel import (
    FLOAT32_EPS,
    at_least_one,
    check_eta,
    check_initial,
    memory_budget,
    notes_on,
    resolve_options,
)
from prune4rel.methods.registry import Method, Outcome, Request
from prune4rel.neighbours.build import Neighbourhood
from prune4rel.signals import Signals


@dataclass(frozen=True)
class Settings:
    """How the cluster is to be used.

    Parameters
    ----------
    address
        Of a running cluster; None starts Ray on this machine.
    work_dir
        Folder in which finished tiles are kept.
    partitions
        Select in so many parts first and among their picks then; None selects exactly.
    ann
        Look for neighbours in the likeliest cells only, not everywhere.
    block
        Rows of a block; None chooses. Exact picks do not depend on it.
    """

    address: str | None = None
    work_dir: str | Path | None = None
    partitions: int | None = None
    ann: bool = False
    block: int | None = None


@dataclass(frozen=True)
class RayEngine:
    """A connected cluster with the inputs of one selection; `ray_engine` makes one."""

    cluster: Cluster
    sources: Sources
    settings: Settings

    def run(self, method: Method, request: Request, options: Mapping[str, Any]) -> tuple[Outcome, dict[str, str]]:
        """Run a method; returns its answer and fingerprints of the long arrays."""
        if method.name == "prune4rel":
            return self._prune4rel(request, method.options | dict(options))
        if self.settings.partitions is not None or self.settings.ann:
            raise InputError("partitions and ann are for the method prune4rel; leave them out")
        if method.name not in SCORED:
            raise InputError(
                f"method {method.name!r} cannot run on Ray, for it looks at all examples at once; "
                f"leave engine='ray' out, or use one of prune4rel, {', '.join(sorted(SCORED))}"
            )
        outcome, prints = score_on_ray(self.cluster, self.sources, method, request, options)
        outcome.stats["engine"] = self._facts(None, request.device)
        return outcome, prints

    def device(self, wanted: str) -> str:
        """Settle what tiles are computed with."""
        embeddings = self.sources.long.get("embeddings")
        work = 0.0 if embeddings is None else float(len(embeddings)) ** 2 * embeddings.shape[1]
        return self.cluster.device(wanted, work)

    def _prune4rel(self, request: Request, options: dict[str, Any]) -> tuple[Outcome, dict[str, str]]:
        """Do what `methods.prune4rel` does, with the rows in the cluster."""
        compile_loops(request.progress)
        clock = Clock()
        names = ("tau", "gain", "similarity", "confidence", "strict")
        chosen = resolve_options(options["preset"], **{name: options[name] for name in names})
        eta = check_eta(options["eta"])
        start = check_initial(options["initial"], request.size, len(self.sources))
        limit = options["max_degree"]
        max_degree = None if limit is None else at_least_one(limit, "max_degree")
        self._check_shortcuts(max_degree)
        confidence, print_of_probabilities = confidences(self.cluster, self.sources, chosen["confidence"])
        near = self._look_around(request, options, chosen)
        clock.lap("estimate")
        request.progress.say(near.estimate.describe())
        plan = Plan(
            near,
            confidence / eta,
            request.size,
            gain=chosen["gain"],
            groups=self.sources.labels if request.balanced else None,
            initial=start,
            budget=memory_budget(options["memory"]),
            max_degree=max_degree,
        )
        picks, facts, notes = self._pick(plan, request, clock)
        backend = cast("RayBackend", near.backend)
        stats = {
            "mean_degree": near.estimate.mean_degree,
            "isolated": near.estimate.isolated,
            "zero_gain_picks": float((picks.gains < FLOAT32_EPS).mean()),
            "screen_width": near.estimate.screen_width,
            **facts,
            "engine": self._facts(backend, request.device),
            "seconds": clock.laps,
        }
        plain = stats if max_degree is not None else stats | {"approximate": False}
        outcome = Outcome(
            indices=picks.indices,
            gains=picks.gains,
            objective=picks.objective,
            confidence=confidence / eta * eta,
            options=chosen
            | {
                "preset": options["preset"],
                "tau": near.threshold.tau,
                "eta": options["eta"],
                "max_degree": limit,
                "initial": None if start is None else start.tolist(),
                "allow_zero": options["allow_zero"],
            },
            stats=stats,
            notes=(*notes_on(plain, cast("Signals", self.sources), picks, balanced=request.balanced), *notes),
        )
        return outcome, {"embeddings": backend.source.sha256(), "probabilities": print_of_probabilities}

    def _look_around(self, request: Request, options: dict[str, Any], chosen: dict[str, Any]) -> Neighbourhood:
        embeddings = self.sources.long["embeddings"]
        n, dim = embeddings.shape
        slots = self.cluster.slots(request.device)
        memory = self.cluster.resources.get("memory", math.inf)
        row = dim * embeddings.dtype.itemsize + 8
        wanted = choose_block(n, dim, slots=slots, device=request.device, memory=memory, row=row)
        layout = Layout(n, self.settings.block or wanted)
        more = training_rows(n) if self.settings.ann else 0
        source = survey(self.cluster, embeddings, layout, request.progress, allow_zero=options["allow_zero"], more=more)
        return settle(
            source,
            device=request.device,
            tau=chosen["tau"],
            similarity=chosen["similarity"],
            strict=chosen["strict"],
            target_degree=options["target_degree"],
            screening=options["screening"],
            work_dir=self.settings.work_dir,
        )

    def _check_shortcuts(self, max_degree: int | None) -> None:
        parts = self.settings.partitions
        if parts is not None and (not isinstance(parts, int | np.integer) or parts < 2):
            raise InputError(f"partitions must be a whole number of at least 2, not {parts!r}")
        if self.settings.ann:
            import_faiss()
        if max_degree is not None and (parts is not None or self.settings.ann):
            raise InputError("max_degree cannot be combined with partitions or ann; leave one of them out")

    def _pick(self, plan: Plan, request: Request, clock: Clock) -> tuple[Picks, dict[str, Any], tuple[str, ...]]:
        """Pick exactly, or by the shortcuts that were asked for; also tells what they cost."""
        notes: list[str] = []
        shortcuts: dict[str, Any] = {}
        near = plan.near
        if self.settings.ann:
            cells = choose_cells(cast("RayBackend", near.backend), near.threshold, near.estimate.mean_degree)
            clock.lap("cells")
            plan = replace(plan, near=replace(near, backend=AnnBackend(cast("RayBackend", near.backend), cells)))
            shortcuts = {"edges_found": cells.found, "cells": len(cells.centres), "cells_searched": cells.probes}
            warning = "" if cells.found >= ENOUGH else "; that is few: leave ann out if the exact graph is in reach"
            notes.append(f"Approximate: ann found about {cells.found:.1%} of the true edges{warning}.")
        if self.settings.partitions is None:
            picks, facts = plan.run(request.progress, clock)
        else:
            picks, facts = pick_in_parts(self.cluster, plan, request, clock, self.settings.partitions)
            notes.append(facts.pop("note"))
        if self.settings.ann and facts["path"] != "streaming":
            shortcuts["approximate"] = True
        return picks, facts | shortcuts, tuple(notes)

    def _facts(self, backend: RayBackend | None, device: str) -> dict[str, Any]:
        """Tell what was done on the cluster, for the statistics."""
        tally = self.cluster.tally
        slots = self.cluster.slots(device)
        facts: dict[str, Any] = {
            "name": "ray",
            "nodes": len(tally.nodes),
            "workers": slots,
            "tasks": tally.tasks,
            "retries": tally.retries,
            "bytes_returned": tally.bytes_returned,
            "busy_seconds": tally.busy_seconds,
            "idle": max(0.0, 1 - tally.busy_seconds / max(1e-9, tally.waited_seconds * slots)),
        }
        if backend is not None:
            work = backend.work
            facts |= {
                "block": backend.source.layout.block,
                "tiles": work.tiles,
                "tiles_reused": work.tiles_reused,
                "bytes_loaded": backend.bytes_loaded,
            }
        return facts


@contextmanager
def ray_engine(
    settings: Settings, signals: Signals | str | Path | None, arrays: Mapping[str, Any]
) -> Iterator[RayEngine]:
    """Connect to a cluster and find the inputs; both are let go of at the end of the block."""
    with connect(settings.address) as cluster:
        yield RayEngine(cluster, gather(cluster, signals, arrays), settings)
