"""What people decided about labels: an append-only file, and what it comes to for the examples there are."""

from prune4rel.decisions.log import (
    ConflictError,
    Decision,
    DecisionLog,
    Undo,
    me,
)
from prune4rel.decisions.settle import (
    Settled,
    Whereabouts,
    digests_beside,
    settle,
    settle_from,
    settle_labels,
    settle_signals,
)
from prune4rel.decisions.sheets import read_decisions, write_csv

__all__ = [
    "ConflictError",
    "Decision",
    "DecisionLog",
    "Settled",
    "Undo",
    "Whereabouts",
    "digests_beside",
    "me",
    "read_decisions",
    "settle",
    "settle_from",
    "settle_labels",
    "settle_signals",
    "write_csv",
]
