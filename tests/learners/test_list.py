import pytest
from tests.learners.tiny import tiny_setting

import prune4rel as p4r
from prune4rel.errors import InputError
from prune4rel.learners import Learner, get, list_learners, make_learner, register_learner
from prune4rel.learners.presets import LEARNERS


def test_the_default_comes_first():
    assert list_learners()[0] == "sop+"
    assert p4r.list_learners is list_learners


def test_names_can_be_asked_for_by_a_pattern():
    assert p4r.list_learners("sop*") == ["sop+", "sop"]


@pytest.mark.parametrize("name", list_learners())
def test_every_learner_says_what_it_is(name):
    entry = get(name)
    assert entry.summary
    assert entry.summary.endswith((".", '"Standard" in the paper.'))
    assert entry.citation or name in ("cross-entropy", "logistic", "trust")
    for option in entry.options:
        assert option in (entry.kind.__doc__ or ""), option


def test_unknown_names_are_refused_with_a_hint():
    with pytest.raises(InputError, match="unknown learner 'dividmix'; did you mean 'dividemix'"):
        make_learner("dividmix", tiny_setting())
    with pytest.raises(InputError, match="learner 'elr' has no option 'betta'; did you mean 'beta'"):
        make_learner("elr", tiny_setting(), betta=0.5)


def test_a_learner_of_ones_own():
    @register_learner("mine", citation="me")
    class Mine(Learner):
        """Learns nothing."""

        def __init__(self, setting, *, how=3):
            super().__init__(setting)
            self.how = how

        def passes(self, epoch):
            return [epoch] * 0

    try:
        assert "mine" in list_learners()
        entry = get("mine")
        assert (entry.summary, entry.citation, entry.options) == ("Learns nothing.", "me", {"how": 3})
        assert make_learner("mine", tiny_setting(), how=4).how == 4
    finally:
        LEARNERS.pop("mine")
