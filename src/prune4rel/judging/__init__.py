"""Which labels are wrong: pure functions on arrays."""

from prune4rel.judging.judge import Judgement, judge

__all__ = ["Judgement", "judge"]
