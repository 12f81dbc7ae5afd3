from pathlib import Path

import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, get, with_ours
from prune4rel.recipes.jobs import Settings, check_data, make_jobs
from prune4rel.recipes.setting import SOURCES


@pytest.mark.parametrize("name", RECIPES)
def test_jobs_run_exactly_the_cells(name):
    recipe = RECIPES[name]
    cells = with_ours(recipe)
    jobs = make_jobs(cells, Settings(), select_only=recipe.select_only)
    assert len({job.folder for job in jobs}) == len(jobs)
    run = []
    for job in jobs:
        of = job.cell_of()
        assert len(of) == len(job.cells)
        for spec in job.config.specs:
            for learner in spec.learners or job.config.learners:
                run += [(of[spec.label, learner, ratio], job.labels) for ratio in job.config.ratios]
    wanted = [(cell, labels) for cell in cells for labels in SOURCES[cell.dataset].labels[cell.noise]]
    assert sorted(run) == sorted(wanted)


def test_signals_do_not_depend_on_the_recipe_or_the_filters():
    """Else a second recipe in the same folder would throw the warm-ups of the first away."""
    seen = {}
    for recipe in RECIPES.values():
        for some in (recipe.cells, recipe.cells[:1], recipe.cells[-1:]):
            for job in make_jobs(some, Settings(), select_only=recipe.select_only):
                config = job.config
                needs = {need for spec in config.specs for need in spec.needs}
                kind = (sorted({*config.extras, *needs}), config.repeats, config.warmup_learner)
                assert seen.setdefault(job.folder, kind) == kind


def test_the_same_label_means_the_same_options_in_a_folder():
    seen = {}
    for recipe in RECIPES.values():
        for job in make_jobs(with_ours(recipe, ours=True), Settings()):
            for spec in job.config.specs:
                assert seen.setdefault((job.folder, spec.label), spec.as_dict()) == spec.as_dict()


def test_table2_trains_each_method_with_its_own_learners():
    (job,) = (job for job in make_jobs(get("table2").cells, Settings()) if job.folder == "cifar10n-worst")
    assert job.config.learners == ("cross-entropy", "dividemix", "sop+")
    by_label = {spec.label: spec.learners for spec in job.config.specs}
    assert by_label["Uniform"] == ("cross-entropy",)
    assert by_label["Prune4ReL_B"] == ("dividemix", "sop+")
    assert job.trainings == 3 * (2 + 2) * 4


def test_options_reach_the_data_set():
    jobs = make_jobs(get("table6").cells, Settings(data=Path("here")))
    assert (jobs[0].config.dataset, jobs[0].config.options) == ("imagenet-n", {"noise": 0.2})
    assert jobs[0].config.data == str(Path("here").absolute())
    named = [job.config.options["noise"] for job in make_jobs(get("table5").cells, Settings())]
    assert list(dict.fromkeys(named)) == ["random1", "random2", "random3"]


def test_the_authors_score_rivals_without_augmentation_and_themselves_with():
    views = {job.signal.suffix: job.config.view for job in make_jobs(get("table1").cells, Settings())}
    assert views == {"": "strong", "-plain": "none", "-ten-networks": "none", "-self-supervised": "none"}
    plain = next(job for job in make_jobs(get("table1").cells, Settings()) if job.signal.suffix == "-plain")
    assert {cell.method for cell in plain.cells} == {"SmallLoss", "Margin", "kCenterGreedy", "Moderate"}


def test_a_folder_of_its_own_name_is_taken(tmp_path):
    (tmp_path / "cifar100n").mkdir()
    (job,) = make_jobs(get("fig4").cells, Settings(data=tmp_path))
    assert job.config.data == str(tmp_path / "cifar100n")


def test_jobs_on_the_same_labels_follow_each_other():
    labels = [(job.dataset, job.labels) for job in make_jobs(get("table1").cells, Settings())]
    assert labels == sorted(labels, key=list(dict.fromkeys(labels)).index)


def test_missing_data_is_told_before_anything_runs(tmp_path):
    jobs = make_jobs(get("table1").cells, Settings())
    with pytest.raises(InputError, match=r"--data.*cifar10n and cifar100n.*prune4rel datasets cifar100n"):
        check_data(jobs)
    with pytest.raises(InputError, match=r"cifar-10-batches-py.*prune4rel datasets cifar10n"):
        check_data(make_jobs(get("table1").cells, Settings(data=tmp_path)))
