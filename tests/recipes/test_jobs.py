import json
from pathlib import Path

import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, get, with_ours
from prune4rel.recipes.cells import SOURCES, Wanted, narrow
from prune4rel.recipes.jobs import (
    Cost,
    Settings,
    check_data,
    cost_of,
    in_words,
    make_jobs,
    rates_given,
    rates_measured,
    rates_probed,
    seconds_of,
)
from prune4rel.recipes.reproduce import make_smoke_plan
from prune4rel.training.result import Result


@pytest.mark.parametrize("name", RECIPES)
def test_jobs_run_exactly_the_cells(name):
    recipe = RECIPES[name]
    cells = with_ours(recipe)
    jobs = make_jobs(cells, Settings(), select_only=recipe.select_only, steps=recipe.steps)
    assert len({job.folder for job in jobs}) == len(jobs)
    run = []
    for job in jobs:
        of = job.cell_of()
        assert len(of) == len(job.cells)
        for each in job.config.contenders:
            label = "everything" if each.spec is None else each.spec.label
            run.append((of[label, each.learner, each.ratio], job.labels))
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


def cost(name, settings=None, wanted=None):
    recipe = get(name)
    cells = narrow(recipe.cells, wanted or Wanted())
    return cost_of(make_jobs(cells, settings or Settings(), select_only=recipe.select_only))


def test_trainings_of_the_paper():
    assert cost("table1").trainings == 1200
    assert [cost(f"table{number}").trainings for number in range(2, 7)] == [300, 48, 0, 27, 48]


def test_images_by_hand():
    wanted = Wanted(noise=("worst",), learner=("sop+",), ratio=(0.2,))
    shared = cost("table1", Settings(seeds=1), Wanted(**{**wanted.__dict__, "method": ("Uniform", "Forgetting")}))
    assert shared.images == {("cifar10n", "sop+"): 10 * 50_000 + 2 * 300 * 10_000}
    assert (shared.warm_ups, shared.selections, shared.trainings) == (1, 2, 2)
    ten = cost("table1", Settings(seeds=1), Wanted(**{**wanted.__dict__, "method": ("GraNd",)}))
    assert ten.images == {("cifar10n", "sop+"): 10 * 10 * 50_000 + 300 * 10_000}
    ssp = cost("table1", Settings(seeds=2), Wanted(**{**wanted.__dict__, "method": ("SSP",)}))
    assert ssp.images == {("cifar10n", "cross-entropy"): 2 * 110 * 50_000, ("cifar10n", "sop+"): 2 * 300 * 10_000}


def test_changed_epochs_count():
    short = cost("fig4", Settings(seeds=1, options={"epochs": 30, "warmup_epochs": 1}))
    assert short.all_images == 50_000 + 3 * 2 * 30 * 50_000
    assert cost("fig4", Settings(seeds=1, options={"training": {"epochs": 30}, "warmup_epochs": 1})) == short
    with pytest.raises(InputError, match="epochs must be"):
        cost("fig4", Settings(options={"training": {"epochs": "many"}}))


def test_every_recipe_can_be_told_of():
    for name in RECIPES:
        found = cost(name)
        assert found.all_images > 0
        assert found.selections > 0
        assert found.warm_ups > 0


def test_seconds():
    some = Cost(1, 1, 1, {("cifar10n", "sop+"): 600.0, ("cifar10n", "dividemix"): 100.0})
    assert seconds_of(some, {("cifar10n", "sop+"): 10.0, ("cifar10n", "dividemix"): 1.0}, parallel=2) == 80.0
    assert seconds_of(some, {("cifar10n", "sop+"): 10.0}) is None
    assert in_words(some, 80.0).endswith("0.0 million images, about 1 min 20 s")
    assert in_words(some, None).endswith("images")


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_has_to_be_a_number(rate):
    with pytest.raises(InputError, match="--images-per-second"):
        rates_given([], rate)


def test_rates_of_finished_trainings(tmp_path):
    jobs = make_jobs(get("fig4").cells, Settings())
    for number, seconds in enumerate((10.0, 30.0)):
        place = tmp_path / "cifar100n-noisy" / "trainings" / f"t{number}"
        place.mkdir(parents=True)
        (place / "training.json").write_text(json.dumps({"learner": "sop+"}))
        Result(0.5, 0.5, None, None, None, 0, 100, 4, {"training": seconds}).save(place)
    assert rates_measured(jobs, tmp_path) == {("cifar100n", "sop+"): 2 * 400 / 40}
    (tmp_path / "cifar100n-noisy" / "trainings" / "t1" / "training.json").write_text("{")
    assert rates_measured(jobs, tmp_path) == {("cifar100n", "sop+"): 40.0}
    assert rates_measured(jobs, tmp_path / "elsewhere") == {}


def test_probing_asks_only_for_what_is_not_known(tmp_path):
    plan = make_smoke_plan("table2", tmp_path, Wanted(noise=("worst",), learner=("sop+", "ce")))
    known = {("cifar10n", "cross-entropy"): 7.0}
    found = rates_probed(plan.jobs, known)
    assert found["cifar10n", "cross-entropy"] == 7.0
    assert found["cifar10n", "sop+"] > 0
    assert set(found) == {("cifar10n", "cross-entropy"), ("cifar10n", "sop+")}
