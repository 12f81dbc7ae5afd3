import pytest

from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, PaperCell
from prune4rel.recipes.errata import ERRATA, remarks
from prune4rel.recipes.paper import published


@pytest.mark.parametrize(
    ("table", "cell", "metric", "word"),
    [
        (1, ("cifar100n", "noisy", "sop+", "Prune4ReL_B", 0.2), ACCURACY, "9.1 %"),
        (2, ("cifar100n", "noisy", "sop+", "Prune4ReL_B", 0.2), ACCURACY, "21.6 %"),
        (1, ("cifar100n", "noisy", "dividemix", "Prune4ReL_B", 0.2), ACCURACY, "3.7 %"),
        (2, ("cifar10n", "worst", "sop+", "Prune4ReL_B", 0.8), ACCURACY, "76.4"),
        (6, ("imagenet-n", "asym20", "sop+", "Prune4ReL_B", 0.05), ACCURACY, "8.6 %"),
        (4, ("cifar100n", "noisy", "sop+", "Moderate", 0.4), NOISE, "repeats"),
        (4, ("cifar100n", "noisy", "sop+", "Moderate", 0.8), NOISE, "50.25"),
        (4, ("cifar10n", "random", "sop+", "Prune4ReL", 0.8), NOISE, "22.08"),
        (5, ("cifar10n", "random", "sop+", "Prune4ReL", 0.2), ACCURACY, "87.8"),
        (5, ("cifar10n", "random", "sop+", "Forgetting", 0.2), CORRECTED, "17.67"),
        (4, ("cifar10n", "random", "sop+", "Margin", 0.4), NOISE, "17.67"),
        (2, ("cifar100n", "noisy", "cross-entropy", "Forgetting", 0.2), ACCURACY, "43.5"),
        (2, ("cifar100n", "noisy", "dividemix", "Prune4ReL_B", 0.2), ACCURACY, "39.4"),
    ],
)
def test_a_number_with_an_erratum_says_so(table, cell, metric, word):
    assert (PaperCell(*cell), metric) in published(table)
    assert any(word in text for text in remarks(table, PaperCell(*cell), metric))


@pytest.mark.parametrize(
    ("table", "cell", "metric"),
    [
        (1, ("cifar10n", "worst", "sop+", "Uniform", 0.2), ACCURACY),
        (4, ("cifar100n", "noisy", "sop+", "Moderate", 0.2), NOISE),
        (4, ("cifar10n", "worst", "sop+", "Prune4ReL", 0.8), NOISE),
        (1, ("cifar10n", "random", "sop+", "Prune4ReL", 0.2), ACCURACY),
        (2, ("cifar100n", "noisy", "dividemix", "Prune4ReL_B", 0.4), ACCURACY),
    ],
)
def test_other_numbers_do_not(table, cell, metric):
    assert remarks(table, PaperCell(*cell), metric) == ()


def test_every_erratum_is_about_a_number_that_is_printed():
    for erratum in ERRATA:
        concerned = [
            key for table in erratum.tables for key in published(table) if erratum.concerns(table, key[0], key[1])
        ]
        assert concerned, erratum.text
