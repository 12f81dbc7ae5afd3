"""Pages that are made while the site is built say all there is to say."""

import json
import re
from pathlib import Path

import pytest

import prune4rel as p4r

pytest.importorskip("mkdocs", reason="MkDocs is not installed")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def hooks():
    import runpy

    return runpy.run_path(str(DOCS / "hooks.py"))


def test_every_command_has_a_page_with_all_its_options(hooks):
    pages, commands = dict(hooks["command_pages"]()), hooks["commands"]()
    assert {"clean", "review", "run", "doctor"} <= set(commands)
    for name, command in commands.items():
        page = pages[f"commands/{name}.md"]
        assert f"]({name}.md)" in pages["commands/index.md"]
        for option in command.params:
            for flag in option.opts if option.param_type_name == "option" else [option.name.upper()]:
                assert f"`{flag}`" in page, (name, flag)


def test_the_reference_names_all_that_is_public(hooks):
    pages = dict(hooks["reference_pages"]())
    shown = re.findall(r"^::: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    assert len(shown) == len(set(shown))
    names = {each.rpartition(".")[2] for each in shown}
    assert {name for name in p4r.__all__ if name[0] != "_"} <= names
    assert {"NoisyLabelClassifier", "SOPPlusLoss", "LabelsCallback", "to_cleanlab", "register_export"} <= names


def test_tutorials_are_shown_with_what_they_said(hooks):
    pages = dict(hooks["tutorial_pages"]())
    assert sum(place.endswith(".png") for place in pages) >= 1
    for path in (DOCS / "tutorials").glob("*.ipynb"):
        page = pages[f"tutorials/{path.stem}.md"]
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        said = [output for cell in cells for output in cell["outputs"]]
        assert said
        for output in said:
            assert "".join(output.get("text", "")).rstrip() in page
        assert page.count("```") % 2 == 0


@pytest.mark.parametrize("word", ["mislabeled", "noisy labels", "coreset", "label errors", "data pruning"])
def test_a_search_by_the_words_of_others_finds_something(word):
    texts = [path.read_text(encoding="utf-8").lower() for path in DOCS.rglob("*.md")]
    assert sum(word.lower().removesuffix("s") in text for text in texts) >= 2, word


def test_pages_show_the_examples_they_name():
    """The formatter takes a snippet's line for Python, where the fence says that it is."""
    lines = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md"))
    named = re.findall(r"^ *-- ?8 ?< ?--.*$", lines, re.MULTILINE)
    assert {line.strip() for line in named} == {
        f'--8<-- "examples/{name}_in_your_loop.py"' for name in ("sop_plus", "elr", "trust")
    }


def test_what_users_call_is_in_the_reference_though_it_is_inherited():
    config = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert "inherited_members: true" in config  # SubsetSelector.fit_resample, SOPLoss.step
