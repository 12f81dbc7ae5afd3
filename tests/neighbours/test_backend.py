import pytest

from prune4rel.neighbours.backend import EdgeBudget, TooManyEdges


def test_budget_can_be_used_up_to_the_last_edge_and_no_further():
    budget = EdgeBudget(5)
    budget.take(2)
    budget.take(3)
    with pytest.raises(TooManyEdges):
        budget.take(1)


def test_exhausted_budget_stops_everyone():
    budget = EdgeBudget(float("inf"))
    budget.exhaust()
    with pytest.raises(TooManyEdges):
        budget.take(0)
