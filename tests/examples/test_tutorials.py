"""Tutorials run from an empty folder, and what is kept of them is what they say now."""

import re
import resource
import runpy
from difflib import SequenceMatcher
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
TUTORIALS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
MOST_SECONDS = 120
"""Of one processor: then it takes less than that on two cores, and a busy machine does not count."""


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(FOLDER.parent / "run_tutorials.py"))


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_four_journeys_are_there():
    assert TUTORIALS == ["embeddings", "images", "own_loop", "text"]


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_and_shows_what_is_kept(script, name, tmp_path):
    begin = seconds_of_children()
    notebook = script["run_notebook"](FOLDER / f"{name}.ipynb", tmp_path)
    assert seconds_of_children() - begin < MOST_SECONDS
    kept = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    for now, then in zip(notebook.cells, kept.cells, strict=True):
        assert now.source == then.source
        if now.cell_type == "code":
            assert [each.output_type for each in now.outputs] == [each.output_type for each in then.outputs], now.source
    alike = SequenceMatcher(None, words_of(kept), words_of(notebook), autojunk=False).ratio()
    assert alike > 0.9, f"python docs/run_tutorials.py {name}"


def words_of(notebook):
    """What a notebook says, without numbers: these may differ a little between machines."""
    said = [each.get("text", "") for cell in notebook.cells for each in cell.get("outputs", ())]
    return re.findall(r"[^\W\d]+", " ".join(said))


def test_what_is_kept_names_no_path_of_the_one_who_ran_it():
    for name in TUTORIALS:
        text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
        assert "/tmp" not in text  # noqa: S108 - nothing is written there
        assert "/home" not in text
        assert "\\u001b" not in text
        assert len(text) < 300_000
