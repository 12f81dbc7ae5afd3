import numpy as np
from tests.instances import many, points_of

from prune4rel.neighbours.screen import choose_screen, whole
from prune4rel.scale import lens
from prune4rel.scale.lens import Lens
from prune4rel.scale.tiles import Block, project_block

ROWS = many(300, dim=64).rows
POINTS = points_of(ROWS)
SCREEN = choose_screen(POINTS.unit(slice(None)), 0.9, "projection", check_cost=1.0)


def block_at(start):
    part = slice(start, start + 10)
    return Block(start, ROWS[part], POINTS.squared_norms[part], None)


def test_a_worker_remembers_what_it_projected_lately(monkeypatch):
    made = []
    monkeypatch.setattr(lens, "project_block", lambda *given: made.append(given[0].start) or project_block(*given))
    monkeypatch.setattr(lens, "REMEMBERED", 2)
    monkeypatch.setattr(lens, "_projected", type(lens._projected)())
    one, other = Lens(SCREEN, "one"), Lens(SCREEN, "other")
    for start in (0, 10, 0, 20, 0, 10):
        found = one.through(block_at(start))
        np.testing.assert_array_equal(found.operand, project_block(block_at(start), SCREEN))
        np.testing.assert_array_equal(found.rows, block_at(start).rows)
    assert made == [0, 10, 20, 10]
    other.through(block_at(10))
    assert made == [0, 10, 20, 10, 10]


def test_whole_vectors_need_no_operand():
    assert Lens(whole(64), "whole").through(block_at(0)).operand is None
