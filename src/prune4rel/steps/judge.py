"""Judge the labels of features out of sample, instead of warming a model up that memorises them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from prune4rel.errors import InputError, nearest
from prune4rel.progress import Progress
from prune4rel.steps.data import open_as_given
from prune4rel.steps.model import WHAT, ModelOptions
from prune4rel.steps.options import option
from prune4rel.steps.step import SignalsStep, Steps

AUTO, JUDGING, WARMUP = "auto", "judging", "warmup"
SOURCES = (AUTO, JUDGING, WARMUP)


@dataclass(frozen=True)
class JudgeOptions(ModelOptions):
    """Where methods get their signals from."""

    signals_from: str = option(
        AUTO,
        "What methods go by: judging (out of sample, as `clean` does), warmup (a model trained briefly), or auto: "
        "judging for features, warmup for images.",
        panel=WHAT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signals_from not in SOURCES:
            known = nearest(self.signals_from, SOURCES)
            raise InputError(f"signals_from: unknown {self.signals_from!r}; {known}", "signals_from")


@dataclass(frozen=True)
class JudgeStep(SignalsStep):
    """One judging of all labels; shared by all learners."""

    title: ClassVar[str] = "judging"
    place: ClassVar[str] = "judgings"

    options: JudgeOptions
    expected: float
    """Seconds."""

    @classmethod
    def provide(cls, steps: Steps, learner: str, seed: int) -> Self | None:
        """Judge once a seed, where that is wanted and possible; else leave it to a warm-up."""
        del learner
        options, train = steps.options, steps.dataset.train
        missing = sorted({*options.extras, *(need for spec in options.specs for need in spec.needs)})
        if options.signals_from == WARMUP or (options.signals_from == AUTO and (train.features is None or missing)):
            return None
        if train.features is None:
            raise InputError(
                f"signals_from: judging goes by features, but the examples are {train.kind}; embed them first, or use "
                "warmup",
                "signals_from",
            )
        if missing:
            raise InputError(
                f"signals_from: judging gives no {missing[0]}, which is asked for; use warmup", "signals_from"
            )
        from prune4rel.cleaning.prepare import estimate

        n, dim = train.features.shape
        seconds, _ = estimate(n, dim, steps.dataset.n_classes)
        return steps.once(
            (cls, seed),
            lambda: cls(
                f"judging the labels, seed {seed}",
                steps.folder / cls.place / f"seed{seed}",
                {"data": steps.data, "seed": seed},
                JUDGING,
                seed,
                options,
                seconds,
            ),
        )

    def work(self, progress: Progress) -> Mapping[str, Any]:
        """Judge, and save signals: honest probabilities, features as embeddings, and losses of the given labels."""
        import numpy as np

        from prune4rel.cleaning import clean

        found = clean(
            open_as_given(self.options),
            decisions=self.options.decisions,
            seed=self.seed,
            device=self.options.device,
            skip_broken=self.options.skip_broken,
            progress=progress,
        )
        signals = found.signals
        chances = np.asarray(signals.need("probabilities"), dtype=np.float64)[np.arange(len(signals)), signals.labels]
        losses = np.where(found.labels.source == "nobody", np.inf, -np.log(np.maximum(chances, 1e-12)))
        replace(signals, losses=losses).save(self.signals, force=True)
        found.labels.save(self.folder / "labels.parquet", force=True)
        return {"notes": list(found.notes), "noise_rate": found.labels.noise_rate}

    def seconds(self, pace: Any) -> float:
        """Return roughly how long it takes; no step of an optimiser is made."""
        del pace
        return self.expected
