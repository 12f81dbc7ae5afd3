"""Every published number, against the list it was copied from."""

import csv

import pytest

from prune4rel.recipes.cells import PaperCell
from prune4rel.recipes.paper import TABLES, published

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
    assert seen == {(table, *key) for table in TABLES for key in published(table)}
    assert len(seen) == 437


def test_counts():
    assert [len(published(table)) for table in range(1, 7)] == [240, 60, 16, 96, 9, 16]


def test_table2_repeats_table1():
    for (cell, metric), number in published(2).items():
        if cell.learner != "cross-entropy":
            assert published(1)[cell, metric] == number


def test_spreads_are_printed_in_the_first_two_tables_only():
    for table in TABLES:
        assert all((number.std is not None) == (table <= 2) for number in published(table).values())
