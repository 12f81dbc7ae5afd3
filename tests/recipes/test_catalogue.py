import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, get, with_ours
from prune4rel.recipes.cells import BINS, OURS, SECONDS, SOURCES
from prune4rel.recipes.compare import printed
from prune4rel.recipes.paper import published


@pytest.mark.parametrize("number", range(1, 7))
def test_the_cells_of_a_table_are_the_papers_rows(number):
    recipe = get(f"table{number}")
    rows = {(cell, metric) for cell in recipe.cells for metric in recipe.metrics}
    assert rows == set(published(number))
    assert len(rows) == len(recipe.cells) * len(recipe.metrics)


def test_all_tables_and_figures_are_there():
    tables = [f"table{number}" for number in range(1, 7)]
    assert list(RECIPES) == [*tables, "fig1a", "fig2", "fig3a", "fig3b", "fig3c", "fig4", "budgets"]


def test_figures_have_the_shape_the_paper_tells_of():
    assert {cell.learner for cell in get("fig1a").cells} == {"dividemix"}
    assert get("fig2").metrics == (BINS,)
    assert [(cell.method, cell.ratio) for cell in get("fig2").cells] == [("Uniform", 0.2)] * 2
    assert (len(get("fig3a").cells), len(get("fig3b").cells), len(get("fig3c").cells)) == (40, 40, 10)
    assert {cell.ratio for cell in get("fig3b").cells} == {0.01, 0.05, 0.1, 0.2}
    assert get("fig3c").metrics == (SECONDS,)
    assert get("fig3c").select_only
    assert len(get("fig4").cells) == 12


def test_what_of_a_figure_is_printed():
    fig4 = get("fig4")
    assert sum(printed(fig4, cell, "test_acc") is not None for cell in fig4.cells) == 4
    fig1a = get("fig1a")
    assert all(printed(fig1a, cell, "test_acc") for cell in fig1a.cells)
    assert not any(printed(get("fig3a"), cell, "test_acc") for cell in get("fig3a").cells)


def test_every_cell_names_a_known_data_set_and_noise():
    for recipe in RECIPES.values():
        for cell in recipe.cells:
            assert cell.noise in SOURCES[cell.dataset].labels


def test_ours_stand_in_every_setting_of_table1_only_unless_told():
    table1 = get("table1")
    beside = with_ours(table1)[len(table1.cells) :]
    assert len(beside) == len(set(beside)) == 3 * 2 * 4 * len(OURS)
    assert all(cell.method in OURS for cell in beside)
    assert with_ours(table1, ours=False) == table1.cells
    assert with_ours(get("table3")) == get("table3").cells
    assert len(with_ours(get("table3"), ours=True)) == 16 + 2 * 4 * 2


def test_an_unknown_name_is_pointed_to_the_nearest():
    with pytest.raises(InputError, match="did you mean 'fig3c'"):
        get("fig3d")
