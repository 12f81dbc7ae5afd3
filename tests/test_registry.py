import importlib.metadata
import sys
from importlib.metadata import EntryPoint

import pytest

from prune4rel import registry
from prune4rel.errors import InputError
from prune4rel.registry import Entries, listed, look_up, options_of, summary_of


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "package_for_registry_tests"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in ("one", "two", "helper"):
        (folder / f"{name}.py").write_text("SEEN = __name__\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        sys.modules.pop(name)


def imported(package):
    start = f"{package.name}."
    return sorted(name.removeprefix(start) for name in sys.modules if name.startswith(start))


def test_every_module_but_those_apart_is_imported(package):
    Entries("thing", package.name, apart={"helper"}).found()
    assert imported(package) == ["one", "two"]
    Entries("thing", package.name).found()
    assert imported(package) == ["helper", "one", "two"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("import no_such_module_anywhere", r"ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_by_its_file(package, content, words):
    (package / "two.py").write_text(content)
    with pytest.raises(InputError, match=rf"two\.py: cannot be imported \({words}.*; repair or remove it") as refusal:
        Entries("thing", package.name).found()
    assert str(package / "two.py") in str(refusal.value)
    assert refusal.value.__cause__ is not None


class Distribution(importlib.metadata.Distribution):
    metadata = {"Name": "their-package"}  # noqa: RUF012 - as short as can be

    def read_text(self, _filename):
        return None

    def locate_file(self, path):
        return path


def test_modules_of_other_packages_are_imported_and_named_where_they_cannot_be(package, monkeypatch):
    def bring(*points):
        monkeypatch.setattr(registry, "entry_points", lambda *, group: points if group == "theirs" else ())

    bring(EntryPoint("good", f"{package.name}.helper", "theirs"))
    Entries("thing", package.name, group="theirs", apart={"one", "two", "helper"}).found()
    assert imported(package) == ["helper"]
    bad = EntryPoint("bad", f"{package.name}.absent", "theirs")
    bring(bad)
    with pytest.raises(InputError, match=rf"the entry point bad = {package.name}\.absent: cannot be imported"):
        Entries("thing", package.name, group="theirs").found()
    vars(bad)["dist"] = Distribution()
    with pytest.raises(InputError, match=r"absent of the package their-package: cannot be imported \(ModuleNotFound"):
        Entries("thing", package.name, group="theirs").found()


def test_the_group_is_called_as_the_package_unless_told(package, monkeypatch):
    asked = []
    monkeypatch.setattr(registry, "entry_points", lambda *, group: asked.append(group) or ())
    Entries("thing", package.name).found()
    assert asked == [package.name]


def test_names_are_sorted_the_usual_one_first():
    assert listed({"c": 1, "a": 2, "b": 3}) == ["a", "b", "c"]
    assert listed(["c", "a", "b"], first="b") == ["b", "a", "c"]


@pytest.mark.parametrize("name", ["aple", None, ["apple"], 3])
def test_unknown_names_of_all_kinds_are_refused(name):
    with pytest.raises(InputError, match=r"unknown fruit .*Known: apple, pear"):
        look_up("fruit", name, {"apple": 1, "pear": 2})


def test_what_is_known_is_found_and_listed_as_told():
    assert look_up("fruit", "pear", {"apple": 1, "pear": 2}) == 2
    with pytest.raises(InputError, match=r"unknown fruit 'x'; Known: pear, more$"):
        look_up("fruit", "x", {"apple": 1, "pear": 2}, known=["pear", "more"])


def test_options_are_what_is_taken_by_keyword_only():
    class Thing:
        def __init__(self, one, *rest, two=2, three, **more):
            pass

    assert list(options_of(Thing)) == ["two", "three"]
    assert options_of(Thing)["two"] == 2


def test_the_first_line_of_a_docstring_is_the_summary():
    def documented():
        """Short words.

        Long words.
        """

    assert summary_of(documented, "'it'") == "Short words."
    with pytest.raises(ValueError, match="method 'mute' has no docstring; its first line is shown to users"):
        summary_of(lambda: None, "method 'mute'")
