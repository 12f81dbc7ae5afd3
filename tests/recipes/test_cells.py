import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, get, with_ours
from prune4rel.recipes.cells import (
    LOWER_FIRST,
    SELF_SUPERVISED,
    SHARED,
    SOURCES,
    TEN_NETWORKS,
    TITLES,
    PaperCell,
    Wanted,
    grid,
    narrow,
    paper_method,
)
from prune4rel.steps.select import EVERYTHING, MethodSpec


def test_a_grid_has_every_combination_once():
    cells = grid([("a", "x"), ("b", "y")], ["l1", "l2"], ["m1", "m2", "m3"], [0.1, 0.2])
    assert len(cells) == len(set(cells)) == 24
    assert cells[0] == PaperCell("a", "x", "l1", "m1", 0.1)
    assert ("a", "y") not in {(cell.dataset, cell.noise) for cell in cells}


def test_every_ranking_has_a_title():
    assert set(LOWER_FIRST) <= set(TITLES)


def test_every_method_of_every_recipe_can_be_run():
    for recipe in RECIPES.values():
        for cell in with_ours(recipe, ours=True):
            if cell.method == EVERYTHING:
                assert cell.ratio == 1
                continue
            found = paper_method(cell.method, cell.dataset)
            spec = MethodSpec.read(
                {
                    "method": found.method,
                    "options": dict(found.options),
                    "balanced": found.balanced,
                    "label": found.label,
                },
                balanced=False,
            )
            assert spec.balanced is found.balanced


def test_the_papers_thresholds():
    taus = {name: source.tau for name, source in SOURCES.items()}
    assert taus == {"cifar10n": 0.975, "cifar100n": 0.95, "webvision": 0.95, "clothing1m": 0.8, "imagenet-n": 0.95}
    for name, tau in taus.items():
        assert paper_method("Prune4ReL", name).options == {"preset": "official", "tau": tau}


def test_only_what_the_paper_balances_is_balanced():
    names = ("Uniform", "SmallLoss", "Margin", "kCenterGreedy", "Forgetting", "GraNd", "SSP", "Moderate", "Prune4ReL")
    assert not any(paper_method(name, "cifar10n").balanced for name in names)
    assert all(paper_method(name, "cifar10n").balanced for name in ("Prune4ReL_B", "Ours (coverage)"))


def test_forgetting_is_that_of_the_authors_code():
    """What was never learnt comes last, and every class keeps the same share."""
    assert paper_method("Forgetting", "cifar10n").options == {"never_learnt": "lowest", "same_share": True}


def test_the_same_choice_has_the_same_label():
    assert paper_method("Prune4ReL-MaxProb", "cifar10n") == paper_method("Prune4ReL", "cifar10n")
    assert paper_method("Prune4ReL_B (tau=0.95)", "cifar100n") == paper_method("Prune4ReL_B", "cifar100n")
    other = paper_method("Prune4ReL-DiffProb", "cifar10n")
    assert (other.label, other.options["confidence"]) == ("Prune4ReL-DiffProb", "diff-prob")
    assert paper_method("Prune4ReL_B (tau=0.93)", "cifar100n").options["tau"] == 0.93


def test_costly_signals_are_kept_apart():
    kinds = {name: paper_method(name, "cifar10n").signal for name in ("Uniform", "Forgetting", "GraNd", "SSP")}
    assert kinds == {"Uniform": SHARED, "Forgetting": SHARED, "GraNd": TEN_NETWORKS, "SSP": SELF_SUPERVISED}
    assert len({kind.suffix for kind in kinds.values()}) == 3


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="Prune5"):
        paper_method("Prune5", "cifar10n")


CELLS = with_ours(get("table1"))


def test_nothing_asked_for_is_everything():
    assert narrow(CELLS, Wanted()) == CELLS


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (Wanted(dataset=("cifar100n",)), 96),
        (Wanted(dataset=("CIFAR-100N",), learner=("SOP+",)), 48),
        (Wanted(noise=("worst", "random"), learner=("DivideMix",), ratio=(0.2,)), 24),
        (Wanted(method=("prune4rel_b", "small-loss", "kcenter")), 72),
        (Wanted(method=("label-aware",), ratio=(0.2, 0.4)), 12),
    ],
)
def test_counts(wanted, count):
    assert len(narrow(CELLS, wanted)) == count


def test_order_is_kept_and_every_filter_holds():
    found = narrow(CELLS, Wanted(dataset=("cifar10n",), noise=("worst",), method=("SSP", "Uniform")))
    assert list(found) == [cell for cell in CELLS if cell in found]
    assert {(cell.dataset, cell.noise) for cell in found} == {("cifar10n", "worst")}
    assert {cell.method for cell in found} == {"Uniform", "SSP"}


def test_cross_entropy_by_its_names():
    cells = get("table2").cells
    for word in ("CE", "cross-entropy", "Standard"):
        assert len(narrow(cells, Wanted(learner=(word,)))) == 36


def test_prune4rel_is_not_its_balanced_sister():
    assert {cell.method for cell in narrow(CELLS, Wanted(method=("prune4rel",)))} == {"Prune4ReL"}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (Wanted(method=("smalloss",)), "did you mean 'SmallLoss'"),
        (Wanted(noise=("noise",)), "did you mean 'noisy'"),
        (Wanted(dataset=("webvision",)), "Known: cifar10n, cifar100n"),
        (Wanted(ratio=(0.3,)), "it has 0.2, 0.4, 0.6, 0.8"),
        (Wanted(dataset=("cifar100n",), noise=("worst",)), "nothing is left.*it has noisy"),
    ],
)
def test_what_is_not_there_is_refused(wanted, words):
    with pytest.raises(InputError, match=words):
        narrow(CELLS, wanted)
