"""Numbers read from folders are those that were written there."""

import numpy as np
import pytest

from prune4rel.recipes import Settings, Wanted, make_smoke_plan, reproduce
from prune4rel.recipes.cells import ACCURACY, NOISE, SECONDS
from prune4rel.recipes.harvest import harvest, relabelings
from prune4rel.selection import Selection
from prune4rel.steps.data import open_dataset

SMALL = Wanted(noise=("worst",), learner=("sop+",), method=("Uniform", "Prune4ReL_B"), ratio=(0.2,))


def test_findings_are_what_lies_in_the_folders(tmp_path):
    plan = make_smoke_plan("table1", tmp_path, SMALL, Settings(seeds=2))
    reproduce(plan, tmp_path)
    found = harvest(plan.jobs, tmp_path / "smoke")
    assert sorted({finding.seed for finding in found}) == [0, 1]
    assert len(found) == 4
    folder = tmp_path / "smoke" / plan.jobs[0].folder
    for finding in found:
        assert 0 <= finding.numbers[ACCURACY] <= 100
        places = [
            path
            for path in folder.glob("selections/*/selection.parquet")
            if path.parent.name.endswith(f"seed{finding.seed}")
        ]
        data = open_dataset(plan.jobs[0].config)
        shares = []
        for path in places:
            picks = Selection.load(path).indices
            shares.append(100 * np.mean(data.train.labels[picks] != data.train.clean_labels[picks]))
        assert any(finding.numbers[NOISE] == pytest.approx(share) for share in shares)


def test_looks_have_confidence_for_every_example(tmp_path):
    plan = make_smoke_plan("fig2", tmp_path, Wanted(noise=("worst",)))
    reproduce(plan, tmp_path)
    (look,) = relabelings(plan.jobs, tmp_path / "smoke")
    assert look.confidence.shape == look.right.shape == (60,)
    assert (look.confidence >= 0).all()
    picks = Selection.load(next((tmp_path / "smoke").glob("*/selections/*/selection.parquet"))).indices
    assert (look.confidence[picks] > 0).all()


def test_selections_alone_have_numbers(tmp_path):
    wanted = Wanted(noise=("worst",), method=("SSP", "Margin"), ratio=(0.2, 0.8))
    plan = make_smoke_plan("table4", tmp_path, wanted)
    assert harvest(plan.jobs, tmp_path / "smoke") == []
    reproduce(plan, tmp_path)
    assert not list((tmp_path / "smoke").glob("*/trainings/*"))
    found = harvest(plan.jobs, tmp_path / "smoke")
    assert sorted(finding.cell for finding in found) == sorted(plan.cells)
    assert all(finding.numbers[SECONDS] >= 0 for finding in found)
