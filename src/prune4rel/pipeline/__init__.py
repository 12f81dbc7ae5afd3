"""The pipeline: from a data set to a report, each step done once."""

from prune4rel.pipeline.collect import collect
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.run import Run, describe, run

__all__ = ["Config", "Run", "collect", "describe", "run"]
