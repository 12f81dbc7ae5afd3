from prune4rel.recipes.cells import LOWER_FIRST, TITLES, PaperCell, grid


def test_a_grid_has_every_combination_once():
    cells = grid([("a", "x"), ("b", "y")], ["l1", "l2"], ["m1", "m2", "m3"], [0.1, 0.2])
    assert len(cells) == len(set(cells)) == 24
    assert cells[0] == PaperCell("a", "x", "l1", "m1", 0.1)
    assert ("a", "y") not in {(cell.dataset, cell.noise) for cell in cells}


def test_every_ranking_has_a_title():
    assert set(LOWER_FIRST) <= set(TITLES)
