from dataclasses import replace

import numpy as np
import pytest
from tests.instances import many

from prune4rel.errors import InputError
from prune4rel.greedy.plan import Plan
from prune4rel.machine import Clock
from prune4rel.neighbours.build import neighbourhood
from prune4rel.progress import Progress

ROOMY = 2**30


class Listener(Progress):
    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)


@pytest.fixture
def plan():
    instance = many(200)
    near = neighbourhood(instance.points, tau=0.9, similarity="shifted-cosine")
    return Plan(
        near,
        instance.confidence,
        50,
        gain="paper",
        groups=None,
        initial=None,
        budget=ROOMY,
        max_degree=None,
    )


def run(plan, progress=None):
    return plan.run(progress or Progress(), Clock())


def understated(plan, **changes):
    """A plan whose estimate promises a graph of no size at all."""
    near = replace(plan.near, estimate=replace(plan.near.estimate, graph_bytes=0))
    return replace(plan, near=near, **changes)


def test_graph_that_fits_is_built(plan):
    _, facts = run(plan)
    assert facts["path"] == "graph"
    assert facts["edges"] == plan.near.estimate.edges
    assert facts["mean_degree"] == plan.near.estimate.mean_degree
    assert facts["isolated"] == plan.near.estimate.isolated
    assert facts["approximate"] is False
    assert facts["edges_left_out"] == 0


@pytest.mark.parametrize("change", [lambda plan: replace(plan, budget=1), lambda plan: understated(plan, budget=1000)])
def test_graph_that_does_not_fit_is_streamed_to_the_same_picks(plan, change):
    wanted, _ = run(plan)
    listener = Listener()
    found, facts = run(change(plan), listener)
    assert facts["path"] == "streaming"
    assert facts["approximate"] is False
    assert any("does not fit the memory" in line for line in listener.said)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)


@pytest.mark.parametrize(
    "change", [lambda plan: replace(plan, budget=1000), lambda plan: understated(plan, budget=1000)]
)
def test_coverage_without_room_for_the_graph_names_the_estimate_and_the_ways_out(plan, change):
    with pytest.raises(InputError) as refusal:
        run(change(replace(plan, gain="coverage")))
    message = str(refusal.value)
    estimate = plan.near.estimate
    for part in (f"{estimate.edges:,} edges", f"{estimate.mean_degree:.0f} an example", "at tau = 0.9", "1000 B"):
        assert part in message
    for remedy in ("tau='auto'", "a higher tau", "max_degree=K", "more memory", "gain='paper'"):
        assert remedy in message


def test_graph_that_is_known_not_to_fit_is_not_even_begun(plan, monkeypatch):
    monkeypatch.delattr(type(plan.near.backend), "upper")
    assert run(replace(plan, budget=1))[1]["path"] == "streaming"


@pytest.mark.parametrize("gain", ["paper", "coverage"])
def test_limited_degree_needs_less_room_and_says_that_it_is_approximate(plan, gain):
    _, facts = run(replace(plan, gain=gain, budget=plan.near.estimate.graph_bytes // 2, max_degree=2))
    assert facts["path"] == "graph"
    assert facts["approximate"] is True
    assert facts["edges"] + facts["edges_left_out"] == plan.near.estimate.edges


@pytest.mark.parametrize("gain", ["paper", "coverage"])
def test_limit_that_limits_nothing_is_exact(plan, gain):
    wanted, _ = run(replace(plan, gain=gain))
    found, facts = run(replace(plan, gain=gain, max_degree=200))
    assert facts["approximate"] is False
    np.testing.assert_array_equal(found.indices, wanted.indices)


def test_steps_are_timed(plan):
    for some, names in ((plan, {"graph", "greedy"}), (replace(plan, budget=1), {"greedy"})):
        clock = Clock()
        some.run(Progress(), clock)
        assert set(clock.laps) == names


def test_limited_degree_that_may_not_fit_either_is_refused(plan):
    with pytest.raises(InputError, match=r"max_degree=2 may keep edges .* more than the 1 B .* use a smaller one"):
        run(replace(plan, budget=1, max_degree=2))
