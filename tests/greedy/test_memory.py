from dataclasses import replace

import numpy as np
import pytest
from tests.instances import many

from prune4rel.errors import InputError
from prune4rel.greedy.memory import pick_in_memory
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
def asked():
    instance = many(200)
    near = neighbourhood(instance.points, tau=0.9, similarity="shifted-cosine")
    return {
        "near": near,
        "confidence": instance.confidence,
        "size": 50,
        "gain": "paper",
        "groups": None,
        "initial": None,
        "budget": ROOMY,
        "max_degree": None,
    }


def run(asked, progress=None):
    return pick_in_memory(**asked, progress=progress or Progress(), clock=Clock())


def changed(asked, **changes):
    return asked | changes


def understated(asked, **changes):
    """A request whose estimate promises a graph of no size at all."""
    near = replace(asked["near"], estimate=replace(asked["near"].estimate, graph_bytes=0))
    return asked | {"near": near} | changes


def test_graph_that_fits_is_built(asked):
    _, facts = run(asked)
    assert facts["path"] == "graph"
    assert facts["edges"] == asked["near"].estimate.edges
    assert facts["mean_degree"] == asked["near"].estimate.mean_degree
    assert facts["isolated"] == asked["near"].estimate.isolated
    assert facts["approximate"] is False
    assert facts["edges_left_out"] == 0


@pytest.mark.parametrize(
    "change", [lambda asked: changed(asked, budget=1), lambda asked: understated(asked, budget=1000)]
)
def test_graph_that_does_not_fit_is_streamed_to_the_same_picks(asked, change):
    wanted, _ = run(asked)
    listener = Listener()
    found, facts = run(change(asked), listener)
    assert facts["path"] == "streaming"
    assert facts["approximate"] is False
    assert any("does not fit the memory" in line for line in listener.said)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.gains, wanted.gains)


@pytest.mark.parametrize(
    "change", [lambda asked: changed(asked, budget=1000), lambda asked: understated(asked, budget=1000)]
)
def test_coverage_without_room_for_the_graph_names_the_estimate_and_the_ways_out(asked, change):
    with pytest.raises(InputError) as refusal:
        run(change(changed(asked, gain="coverage")))
    message = str(refusal.value)
    estimate = asked["near"].estimate
    for part in (f"{estimate.edges:,} edges", f"{estimate.mean_degree:.0f} an example", "at tau = 0.9", "1000 B"):
        assert part in message
    for remedy in ("tau='auto'", "a higher tau", "max_degree=K", "more memory", "gain='paper'"):
        assert remedy in message


def test_graph_that_is_known_not_to_fit_is_not_even_begun(asked, monkeypatch):
    monkeypatch.delattr(type(asked["near"].backend), "upper")
    assert run(changed(asked, budget=1))[1]["path"] == "streaming"


@pytest.mark.parametrize("gain", ["paper", "coverage"])
def test_limited_degree_needs_less_room_and_says_that_it_is_approximate(asked, gain):
    _, facts = run(changed(asked, gain=gain, budget=asked["near"].estimate.graph_bytes // 2, max_degree=2))
    assert facts["path"] == "graph"
    assert facts["approximate"] is True
    assert facts["edges"] + facts["edges_left_out"] == asked["near"].estimate.edges


@pytest.mark.parametrize("gain", ["paper", "coverage"])
def test_limit_that_limits_nothing_is_exact(asked, gain):
    wanted, _ = run(changed(asked, gain=gain))
    found, facts = run(changed(asked, gain=gain, max_degree=200))
    assert facts["approximate"] is False
    np.testing.assert_array_equal(found.indices, wanted.indices)


def test_steps_are_timed(asked):
    for some, names in ((asked, {"graph", "greedy"}), (changed(asked, budget=1), {"greedy"})):
        clock = Clock()
        pick_in_memory(**some, progress=Progress(), clock=clock)
        assert set(clock.laps) == names


def test_limited_degree_that_may_not_fit_either_is_refused(asked):
    with pytest.raises(InputError, match=r"max_degree=2 may keep edges .* more than the 1 B .* use a smaller one"):
        run(changed(asked, budget=1, max_degree=2))
