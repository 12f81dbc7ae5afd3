import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import RECIPES, with_ours
from prune4rel.recipes.setting import SELF_SUPERVISED, SHARED, SOURCES, TEN_NETWORKS, paper_method
from prune4rel.steps.select import MethodSpec


def test_every_method_of_every_recipe_can_be_run():
    for recipe in RECIPES.values():
        for cell in with_ours(recipe, ours=True):
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
