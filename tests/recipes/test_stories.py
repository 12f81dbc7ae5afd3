"""What the report is given."""

import pytest

from prune4rel.recipes import Wanted, make_smoke_plan, reproduce
from prune4rel.recipes.cells import NOISE
from prune4rel.recipes.harvest import harvest
from prune4rel.recipes.stories import stories_of


def test_folders_of_one_label_set_make_one_story(tmp_path):
    wanted = Wanted(noise=("worst",), learner=("sop+",), method=("Uniform", "GraNd"), ratio=(0.2,))
    plan = make_smoke_plan("table1", tmp_path, wanted)
    assert len(plan.jobs) == 2
    reproduce(plan, tmp_path)
    (story,) = stories_of(plan.jobs, tmp_path / "smoke")
    assert [cell.label for cell in story.cells] == ["Uniform", "GraNd"]
    assert story.title == "SMOKE CIFAR-10N worst"


def test_selections_alone_are_told_of(tmp_path):
    plan = make_smoke_plan("table4", tmp_path, Wanted(noise=("worst",), method=("SSP", "Margin"), ratio=(0.2, 0.8)))
    reproduce(plan, tmp_path)
    found = harvest(plan.jobs, tmp_path / "smoke")
    (story,) = stories_of(plan.jobs, tmp_path / "smoke")
    assert {cell.label for cell in story.cells} == {"SSP", "Margin"}
    by_cell = {(cell.label, cell.ratio): cell.subset_noise for cell in story.cells}
    for finding in found:
        assert finding.numbers[NOISE] == pytest.approx(100 * by_cell[finding.cell.method, finding.cell.ratio])
