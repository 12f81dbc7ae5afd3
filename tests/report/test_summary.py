from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story

from prune4rel.report.summary import all_numbers, bottom_line, facts_of, results_of, what_was_done


def trainings(label, *accuracies, ratio=0.5, learner="sop"):
    cell = bare_story().cells[0]
    return [
        replace(cell, method=label, label=label, seed=seed, test_accuracy=value, ratio=ratio, learner=learner)
        for seed, value in enumerate(accuracies)
    ]


def words(text):
    return text.replace("\u2068", "").replace("\u2069", "").replace("\u00a0", " ")


def test_says_what_was_done():
    assert words(what_was_done(digits_story())) == (
        "From digits (1,797 examples in 10 classes, 39.7% of whose labels are wrong), 3 methods picked 10% to 30% of "
        "the examples, and linear was trained on each subset, with 3 seeds."
    )
    assert (
        words(what_was_done(bare_story())) == "From four (4 examples in 2 classes), uniform picked 50% of the examples."
    )
    assert "picked nothing" in what_was_done(bare_story(cells=()))


def test_names_the_winner_and_its_lead():
    cells = (*trainings("uniform", 0.70, 0.72), *trainings("prune4rel", 0.80, 0.82), *trainings("margin", 0.75, 0.75))
    assert words(bottom_line(bare_story(cells=cells))) == (
        "Keeping 50%, prune4rel is the most accurate with 81.0 ± 1.4%, 6.0 points above margin, the runner-up, "
        "and 10.0 points above uniform."
    )


def test_does_not_favour_its_own_method():
    cells = (*trainings("uniform", 0.90), *trainings("prune4rel", 0.80))
    assert "uniform is the most accurate with 90.0%, 10.0 points above prune4rel." in words(
        bottom_line(bare_story(cells=cells))
    )


def test_a_lead_within_the_spread_is_called_so():
    cells = (*trainings("a", 0.70, 0.80), *trainings("b", 0.69, 0.79))
    assert "1.0 points above b (within the spread of the seeds)" in words(bottom_line(bare_story(cells=cells)))


def test_only_equal_ratios_and_learners_compete():
    cells = (
        *trainings("c", 0.5),
        *trainings("a", 0.9, ratio=0.8),
        *trainings("b", 0.95, learner="elr"),
        *trainings("d", 0.4),
    )
    line = words(bottom_line(bare_story(cells=cells)))
    assert line == "Keeping 50%, c is the most accurate with 50.0%, 10.0 points above d."


def test_full_training_is_held_against_it():
    full = trainings("all examples", 0.93, ratio=1.0)[0]
    line = bottom_line(bare_story(cells=tuple(trainings("a", 0.9)), full_training=full))
    assert words(line) == "Keeping 50%, a reaches 90.0% test accuracy; training on all examples gives 93.0%."


def test_without_training_the_noise_is_the_news():
    story = digits_story()
    light = replace(story.spotlight, test_accuracy=None)
    line = words(bottom_line(replace(story, cells=(light,), spotlight=light)))
    assert line.startswith(f"Of the 539 picks of prune4rel (label-aware), {100 * light.subset_noise:.1f}% have a wrong")
    assert "uniform picked 2 examples; no model" in words(bottom_line(bare_story()))
    assert bottom_line(bare_story(cells=())) == "There is nothing to compare."


def test_the_table_holds_means_of_the_cells():
    story = digits_story()
    columns, rows = results_of(story)
    titles = [title for title, _ in columns]
    for row in rows[:-1]:
        mine = [cell for cell in story.cells if (cell.label, cell.ratio) == (row.label, row.ratio)]
        accuracy = row.cells[titles.index("Test accuracy")]
        assert accuracy.value == fmean(cell.test_accuracy for cell in mine)
        assert accuracy.text.startswith(f"{100 * accuracy.value:.1f}\u00a0±")
        assert row.seeds == 3
    assert rows[-1].full
    assert not rows[-1].best


def test_one_row_of_each_ratio_is_best():
    _, rows = results_of(digits_story())
    assert sorted(row.ratio for row in rows if row.best) == [0.1, 0.3]


def test_columns_nobody_knows_are_left_out():
    columns, rows = results_of(bare_story())
    assert columns == []
    assert rows[0].cells == ()


def test_all_numbers_has_a_row_a_training():
    story = digits_story()
    table = all_numbers(story)
    assert len(table.rows) == len(story.cells) + 1
    place = table.columns.index("subset_noise")
    assert [row[place] for row in table.rows[:-1]] == [cell.subset_noise for cell in story.cells]


def test_facts_are_those_of_the_spotlight():
    story = digits_story()
    facts = {name: value for value, name, _ in facts_of(story)}
    mine = [cell for cell in story.cells if (cell.label, cell.ratio) == (story.spotlight.label, 0.3)]
    assert facts["examples kept"] == "539"
    assert facts["test accuracy"].startswith(f"{100 * np.mean([cell.test_accuracy for cell in mine]):.1f}")
    assert facts_of(bare_story()) == []


@pytest.mark.parametrize("value", [None, float("nan")])
def test_missing_numbers_are_dashes(value):
    cells = (*trainings("a", 0.5), *trainings("b", value))
    _, rows = results_of(bare_story(cells=cells))
    assert rows[1].cells[0].text == "—"
