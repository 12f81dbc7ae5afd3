"""Every published number, against the list it was copied from."""

import csv

import pytest

from prune4rel.recipes.cells import ACCURACY, CORRECTED, NOISE, PaperCell
from prune4rel.recipes.paper import ERRATA, published, remarks

DATASETS = {"CIFAR-10N": "cifar10n", "CIFAR-100N": "cifar100n", "ImageNet-N": "imagenet-n"}
LEARNERS = {"CE": "cross-entropy", "SOP+": "sop+", "DivideMix": "dividemix"}


def test_every_number_is_as_published(public_data):
    numbers = public_data / "paper_results.csv"
    if not numbers.is_file():
        pytest.skip(f"{public_data} holds no list of published numbers")
    seen = set()
    with numbers.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = PaperCell(
                DATASETS[row["dataset"]], row["noise"], LEARNERS[row["learner"]], row["method"], float(row["ratio"])
            )
            key = (cell, row["metric"])
            found = published(int(row["table"]))[key]
            assert found.mean == float(row["mean"]), row
            assert found.std == (float(row["std"]) if row["std"] else None), row
            seen.add((int(row["table"]), *key))
    assert seen == {(table, *key) for table in range(1, 7) for key in published(table)}
    assert len(seen) == 437


def test_counts():
    assert [len(published(table)) for table in range(1, 7)] == [240, 60, 16, 96, 9, 16]


def test_table2_repeats_table1():
    for (cell, metric), number in published(2).items():
        if cell.learner != "cross-entropy":
            assert published(1)[cell, metric] == number


def test_spreads_are_printed_in_the_first_two_tables_only():
    for table in range(1, 7):
        assert all((number.std is not None) == (table <= 2) for number in published(table).values())


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
