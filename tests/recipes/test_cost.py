import json

import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, get
from prune4rel.recipes.cost import Cost, cost_of, in_words, rates_given, rates_measured, rates_probed, seconds_of
from prune4rel.recipes.jobs import Settings, make_jobs
from prune4rel.recipes.narrow import Wanted, narrow
from prune4rel.recipes.reproduce import make_smoke_plan
from prune4rel.training.result import Result


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
