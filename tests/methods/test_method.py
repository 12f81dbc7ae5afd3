import sys
from copy import copy

import pytest

import prune4rel as p4r
from prune4rel.errors import InputError
from prune4rel.methods import method
from prune4rel.methods.method import Outcome, get, list_methods, register_method


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    list_methods()
    monkeypatch.setattr(method, "METHODS", copy(method.METHODS))


def first(signals, request, *, power=2, **_):
    """Keep the first ones.

    More words.
    """
    del signals, power
    return Outcome(indices=range(request.size), gains=range(request.size))


def test_prune4rel_is_listed_first_and_the_others_by_name():
    names = list_methods()
    assert names[0] == "prune4rel"
    assert names[1:] == sorted(names[1:])
    assert {"uniform", "small-loss"} <= set(names)


def test_public_list_is_this_list():
    assert p4r.list_methods is list_methods


def test_names_can_be_asked_for_by_a_pattern():
    assert p4r.list_methods("*-score") == ["bottom-score", "top-score"]
    assert p4r.list_methods("prune?rel") == ["prune4rel"]
    assert p4r.list_methods("Prune*") == []


def test_registered_method_is_found_with_what_is_known_of_it():
    add = register_method("first", needs=("losses",), cost="none", citation="Me", balances=False, seeded=True)
    assert add(first) is first
    method = get("first")
    assert (method.name, method.run, method.summary) == ("first", first, "Keep the first ones.")
    assert (method.needs, method.balances, method.seeded) == (("losses",), False, True)
    assert (method.cost, method.citation) == ("none", "Me")
    assert method.options == {"power": 2}
    assert "first" in list_methods()


def test_method_without_words_for_its_users_is_refused():
    with pytest.raises(ValueError, match=r"method 'mute' has no docstring; its first line is shown to users"):
        register_method("mute", needs=(), cost="")(lambda signals, request: (signals, request))


def test_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown method 'prune4real'; did you mean 'prune4rel'\? Known: prune4rel, "):
        get("prune4real")


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_method_for_tests.py").write_text(
        "import prune4rel\n\n"
        "@prune4rel.register_method('mine', needs=(), cost='none')\n"
        "def mine(signals, request):\n    'Mine.'\n\n"
        "def helper():\n    'Not a method.'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_method_for_tests"
    sys.modules.pop("own_method_for_tests", None)


def test_method_in_a_file_of_the_users_own(own_module):
    assert get(f"{own_module}:mine").summary == "Mine."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:f", r"'no_such_module:f': cannot import 'no_such_module'; is the file in this folder"),
        (":f", r"method ':f': write it as module:function, as in my_file:my_function"),
        ("own_method_for_tests:", r"method 'own_method_for_tests:': write it as module:function"),
        (".relative:f", r"method '.relative:f': write it as module:function"),
        (None, r"unknown method None; Known: prune4rel, "),
        ("own_method_for_tests:absent", r"the module 'own_method_for_tests' has no 'absent'"),
        ("own_method_for_tests:helper", r"decorate 'helper' with @prune4rel.register_method\(...\)"),
    ],
)
@pytest.mark.usefixtures("own_module")
def test_what_is_wrong_with_a_users_method_is_said(name, message):
    with pytest.raises(InputError, match=message):
        get(name)
