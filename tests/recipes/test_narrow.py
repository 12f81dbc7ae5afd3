import pytest

from prune4rel.errors import InputError
from prune4rel.recipes.catalogue import get, with_ours
from prune4rel.recipes.narrow import Wanted, narrow

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
