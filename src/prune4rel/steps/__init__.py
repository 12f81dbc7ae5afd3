"""Kinds of steps of a run, one file each: what a step depends on, its options, its work, its cost.

A new kind is a file here, and its name below: its class in `KINDS`, its options among those of all kinds.
"""

from dataclasses import dataclass

from prune4rel.steps.embed import EmbedOptions
from prune4rel.steps.judge import JudgeOptions, JudgeStep
from prune4rel.steps.look import LookStep
from prune4rel.steps.model import MODEL
from prune4rel.steps.options import option
from prune4rel.steps.select import SelectOptions, SelectStep
from prune4rel.steps.step import Step, Steps
from prune4rel.steps.train import TrainOptions, TrainStep
from prune4rel.steps.warm_up import WarmUpOptions, WarmUpStep

__all__ = ["KINDS", "JudgeStep", "LookStep", "SelectStep", "Step", "StepOptions", "Steps", "TrainStep", "WarmUpStep"]

KINDS: tuple[type[Step], ...] = (JudgeStep, WarmUpStep, LookStep, SelectStep, TrainStep)
"""In the order in which they are begun, in every round."""


@dataclass(frozen=True)
class StepOptions(EmbedOptions, TrainOptions, SelectOptions, JudgeOptions, WarmUpOptions):
    """The options of all kinds of steps, and of a run as a whole."""

    parallel: int = option(1, "Trainings at a time.", least=1, panel=MODEL)
    title: str | None = option(None, "Heading of the report.", panel="Output")
