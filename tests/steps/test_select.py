import pytest

from prune4rel import InputError
from prune4rel.methods import get, list_methods
from prune4rel.methods.method import METHODS
from prune4rel.methods.prune4rel import PRESETS
from prune4rel.steps.select import MethodSpec
from prune4rel.training.warmup import EXTRAS

OWN = '''
import numpy as np
import prune4rel as p4r
from prune4rel.methods import Outcome

@p4r.register_method("last-ones", needs=("aum",), cost="nothing")
def last_ones(signals, request, *, how: "Unknown" = "plain"):
    """Keep the last examples."""
    rows = np.arange(len(signals))[::-1][: request.size].copy()
    return Outcome(rows, np.ones(len(rows)))

def no_method():
    pass
'''


def read(value, *, balanced=True):
    return MethodSpec.read(value, balanced=balanced)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("uniform", "uniform"),
        ("prune4rel", "prune4rel"),
        ("prune4rel/official", "prune4rel (official)"),
        ({"method": "prune4rel", "options": {"tau": 0.9, "preset": "paper"}}, "prune4rel (tau=0.9, paper)"),
        ({"method": "prune4rel", "options": {"preset": "paper"}, "label": "theirs"}, "theirs"),
        ({"method": "uniform", "label": None}, "uniform"),
        ({"method": "uniform", "label": 5}, "5"),
    ],
)
def test_labels(value, label):
    assert read(value).label == label


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_named(preset):
    assert read(f"prune4rel/{preset}").options == {"preset": preset}


@pytest.mark.parametrize("name", list_methods())
def test_a_warm_up_can_provide_what_nearly_any_method_needs(name):
    spec = read(name)
    assert set(spec.needs) <= {*EXTRAS, "scores"}
    assert spec.learns == (name != "uniform")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("unifrom", "did you mean 'uniform'"),
        ("prune4rel/", "unknown preset ''"),
        ("prune4rel/labelaware", "did you mean 'label-aware'"),
        ("", "unknown method ''"),
        ("a:b", "cannot import 'a'"),
        ("tests.pipeline.tiny:tiny", "decorate 'tiny'"),
        (5, "each is a name"),
        (None, "each is a name"),
        ([], "each is a name"),
        ({"method": 5}, "5"),
        ({"method": "uniform", "lable": "x"}, "unknown key 'lable'; did you mean 'label'"),
        ({"method": "prune4rel", "options": 5}, "options of 'prune4rel' must be names and values"),
        ({"method": "prune4rel", "options": {"taú": 1}}, "did you mean 'tau'"),
        ({"method": "prune4rel", "options": {7: 1}}, "has no option 7"),
        ({"method": "prune4rel", "options": {"gain": "cover"}}, "did you mean 'coverage'"),
        ({"method": "prune4rel", "options": {"gain": ["coverage"]}}, "unknown gain"),
        ({"method": "uniform", "balanced": "no"}, "balanced must be true or false"),
        ({"method": "uniform", "label": "everything"}, "choose another label"),
        ({"method": "uniform", "learners": 5}, "learners must be a list of names"),
        ({"method": "uniform", "learners": [5]}, "learners must be a list of names"),
    ],
    ids=str,
)
def test_what_is_no_method(value, words):
    with pytest.raises(InputError) as error:
        read(value)
    assert words in str(error.value)


def test_balance_is_everybodys_unless_told_and_possible():
    assert read("uniform", balanced=True).balanced
    assert not read("uniform", balanced=False).balanced
    assert read({"method": "uniform", "balanced": True}, balanced=False).balanced
    assert not read({"method": "uniform", "balanced": False}, balanced=True).balanced
    for name in list_methods():
        assert read(name, balanced=True).balanced == get(name).balances


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "my_own_ones.py"
    path.write_text(OWN)
    yield path
    METHODS.pop("last-ones", None)


def test_a_method_of_the_users_own(own):
    spec = read("my_own_ones:last_ones")
    assert (spec.method, spec.label, spec.needs, spec.learns) == ("my_own_ones:last_ones", "last-ones", ("aum",), True)
    before = spec.as_dict()
    assert before == read("my_own_ones:last_ones").as_dict()
    own.write_text(OWN + "\n# changed\n")
    assert read("my_own_ones:last_ones").as_dict() != before
    assert "code" not in read("uniform").as_dict()
    assert read({"method": "my_own_ones:last_ones", "options": {"how": "any"}}).label == "last-ones (how=any)"


def test_learners_of_a_method():
    assert read({"method": "uniform", "learners": "sop"}).learners == ("sop",)
    assert read({"method": "uniform", "learners": ["sop", "elr"]}).learners == ("sop", "elr")
    assert read("uniform").learners == ()
