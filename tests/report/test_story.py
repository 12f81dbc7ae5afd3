from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from tests.report.stories import bare_story, digits_story

from prune4rel import InputError
from prune4rel.report import Cell
from prune4rel.report.story import groups_of, main_setting, names_of


def cell(label="a", ratio=0.5, seed=0, learner="sop", **more):
    return Cell(
        method=label, label=label, learner=learner, ratio=ratio, seed=seed, size=1, indices=np.array([0]), **more
    )


def test_groups_hold_cells_that_differ_only_in_the_seed():
    cells = [cell("b", 0.5), cell("a", 0.5), cell("b", 0.2), cell("b", 0.5, seed=1), cell("b", 0.5, learner="elr")]
    found = [(group.label, group.learner, group.ratio, len(group.cells)) for group in groups_of(cells)]
    assert found == [("b", "sop", 0.2, 1), ("b", "sop", 0.5, 2), ("b", "elr", 0.5, 1), ("a", "sop", 0.5, 1)]


def test_mean_and_spread_are_those_of_the_known_values():
    values = [0.5, 0.6, 0.9]
    group = groups_of([*(cell(seed=s, test_accuracy=v) for s, v in enumerate(values)), cell(seed=7)])[0]
    assert group.mean("test_accuracy") == fmean(values)
    assert group.spread("test_accuracy") == stdev(values)
    assert group.mean("subset_noise") is None


def test_one_seed_has_no_spread_and_nan_counts_as_missing():
    group = groups_of([cell(test_accuracy=0.5), cell(seed=1, test_accuracy=float("nan"))])[0]
    assert group.values("test_accuracy") == [0.5]
    assert group.spread("test_accuracy") is None


def test_noise_and_picked_of_real_data():
    story = digits_story()
    assert story.noise == pytest.approx(0.4, abs=0.03)
    assert set(np.flatnonzero(story.picked)) == set(story.spotlight.indices.tolist())
    assert bare_story().noise is None
    assert bare_story().picked is None


def test_titles_that_repeat_are_numbered():
    assert names_of([bare_story(title=title) for title in "aba"]) == ["a (1)", "b", "a (2)"]


def test_main_setting_is_that_of_the_spotlight_where_it_can_be():
    story = digits_story()
    assert main_setting(story, story.cells) == ("linear", 0.3)
    others = [one for one in story.cells if one.ratio == 0.1]
    assert main_setting(story, others) == ("linear", 0.1)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"labels": np.array([0, 1])}, r"labels has shape \(2,\), expected \(4,\)"),
        ({"map_xy": np.zeros((4, 3))}, r"map_xy has shape \(4, 3\), expected \(4, 2\)"),
        ({"labels": np.array([0, 1, 0, 2])}, "labels has a label outside 0 to 1"),
        ({"corrected": np.array([0, 1, 0, -1])}, "corrected has a label outside"),
        ({"clean_labels": np.array([0.0, 1, 0, 1])}, "clean_labels must be whole numbers"),
        ({"class_counts": (4,)}, "1 class counts for 2 class names"),
        ({"cells": (replace(cell(), indices=np.array([4])),)}, "a at ratio 0.5: an index lies outside 0 to 3"),
        ({"spotlight": replace(cell(), indices=np.array([[1]]))}, "indices must be a list"),
    ],
)
def test_what_does_not_fit_together_is_refused(parts, message):
    with pytest.raises(InputError, match=message):
        bare_story(**parts)
