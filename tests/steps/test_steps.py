from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.tiny import tiny

from prune4rel.data import load_dataset
from prune4rel.steps import KINDS, SelectStep, Steps, TrainStep, WarmUpStep
from prune4rel.steps.step import slug, written

HOME = Path("run")


def lay(**changes):
    return Steps(tiny(**changes), load_dataset("digits"), HOME, KINDS)


def test_warm_ups_are_shared_by_methods_and_ratios():
    steps = lay(ratios=(0.1, 0.2), seeds=2, learners=("sop+", "cross-entropy"))
    assert [(each.learner, each.seed) for each in steps.of(WarmUpStep)] == [
        ("sop+", 0),
        ("cross-entropy", 0),
        ("sop+", 1),
        ("cross-entropy", 1),
    ]
    assert len(steps.of(SelectStep)) == len(steps.of(TrainStep)) == 2 * 2 * 2 * 2
    for choice in steps.of(SelectStep):
        assert any(choice.provider is each for each in steps.of(WarmUpStep))


def test_one_learners_warm_up_for_all():
    steps = lay(learners=("sop+", "cross-entropy"), warmup_learner="sop")
    assert [each.learner for each in steps.of(WarmUpStep)] == ["sop"]
    assert (len(steps.of(SelectStep)), len(steps.of(TrainStep))) == (2, 4)
    first, second = (each for each in steps.of(TrainStep) if each.label == "prune4rel")
    assert first.choice is second.choice


def test_everything_once_a_learner_and_seed():
    steps = lay(learners=("sop+", "cross-entropy"), seeds=2, everything=True)
    whole = [each for each in steps.of(TrainStep) if each.choice is None]
    assert [(each.learner, each.seed, each.ratio, each.label) for each in whole] == [
        ("sop+", 0, 1.0, "everything"),
        ("cross-entropy", 0, 1.0, "everything"),
        ("sop+", 1, 1.0, "everything"),
        ("cross-entropy", 1, 1.0, "everything"),
    ]


def test_the_first_seed_can_be_chosen():
    assert {each.seed for each in lay(seed=5, seeds=2).of(TrainStep)} == {5, 6}


def test_learners_of_one_method():
    methods = ["uniform", {"method": "prune4rel", "learners": ["sop+"]}]
    steps = lay(methods=methods, learners=("sop+", "cross-entropy"))
    assert [(each.label, each.learner) for each in steps.of(TrainStep)] == [
        ("uniform", "sop+"),
        ("prune4rel", "sop+"),
        ("uniform", "cross-entropy"),
    ]


def test_selecting_only():
    steps = lay(select_only=True, everything=True)
    assert (len(steps.of(WarmUpStep)), len(steps.of(SelectStep)), len(steps.of(TrainStep))) == (1, 2, 0)


def test_extras_are_what_methods_need_and_what_was_asked_for():
    assert lay(methods=["uniform"]).of(WarmUpStep)[0].extras == ()
    assert lay(methods=["forgetting", "uniform"], extras=["aum"]).of(WarmUpStep)[0].extras == ("aum", "forgetting")


def test_folders_are_different_and_lie_inside():
    methods = [
        {"method": "uniform", "label": label} for label in ("a (b)", "a-b", "A-b", "a_b", "../a", "a" * 90, "a" * 91)
    ]
    steps = lay(methods=methods, ratios=(0.1, 0.12345678, 0.12345679, 1), seeds=2, everything=True)
    folders = [str(step.folder) for step in steps]
    assert len({folder.lower() for folder in folders}) == len(folders)
    for step in steps:
        assert step.folder.parent.parent == HOME
        assert step.folder.name not in (".", "..")


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=100) | st.from_regex(r"\A[aA][ab()_ -]{0,4}\Z")


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_different_names_stay_different(names):
    slugs = {slug(name).lower() for name in names}
    assert len(slugs) == len(names)
    for name in slugs:
        assert name
        assert name[0] != "."
        assert len(name) < 100
        assert name.isascii()
        assert not set(name) & set('/\\:*?"<>| ')


@given(st.lists(st.floats(0, 1, exclude_min=True), min_size=2, unique=True))
def test_different_ratios_stay_different(ratios):
    assert len(set(map(written, ratios))) == len(ratios)
