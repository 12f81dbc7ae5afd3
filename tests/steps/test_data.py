import numpy as np
import pytest
from tests.pipeline.tiny import tiny
from tests.training.small import write_images

from prune4rel import InputError, Selection
from prune4rel.data import load_dataset
from prune4rel.pipeline import run
from prune4rel.steps import KINDS, SelectStep, Steps, WarmUpStep
from prune4rel.steps.data import identify, identify_truth, open_dataset


def test_fingerprints_tell_what_a_data_set_holds():
    plain, other = load_dataset("digits"), load_dataset("digits", noise=0.1)
    assert identify(plain) == identify(load_dataset("digits"))
    assert {name for name in identify(plain) if identify(plain)[name] != identify(other)[name]} == {"labels"}
    assert identify_truth(plain) == identify_truth(other)
    assert set(identify_truth(plain)) == {"clean_labels", "test_labels", "test_images"}
    assert identify_truth(plain) != identify_truth(load_dataset("digits", seed=1))


def test_files_go_by_their_names(tmp_path):
    from PIL import Image

    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for number in range(3):
            Image.fromarray(np.full((8, 8, 3), number, dtype=np.uint8)).save(tmp_path / label / f"{number}.png")
    found = identify(load_dataset("folder", tmp_path))
    (tmp_path / "cat" / "0.png").rename(tmp_path / "cat" / "7.png")
    assert found != identify(load_dataset("folder", tmp_path))


def test_plans_of_trainings_do_not_depend_on_the_warm_up(tmp_path):
    digits = load_dataset("digits")
    short, long = (tiny(warmup_epochs=epochs) for epochs in (1, 9))
    runs = [Steps(config, digits, tmp_path, KINDS) for config in (short, long)]
    assert [run.of(WarmUpStep)[0].depends["plan"]["warmup_epochs"] for run in runs] == [1, 9]
    assert short.plan(digits, "sop+") == long.plan(digits, "sop+")


def test_options_reach_the_plan_of_their_learner():
    digits = load_dataset("digits")
    config = tiny(
        learners=("sop+", "sop"),
        learner_options={"sop": {"rate_u": 3.0}},
        training={"lr": 0.5, "epochs": 7},
        look={"cutout": 2},
        epochs=3,
    )
    plan = config.plan(digits, "sop", 4)
    assert plan.learner_options["rate_u"] == 3.0
    assert config.plan(digits, "sop+", 4).learner_options["rate_u"] != 3.0
    assert (plan.seed, plan.hyperparameters.epochs, plan.hyperparameters.lr, plan.look["cutout"]) == (4, 3, 0.5, 2)


def test_a_data_set_is_read_once():
    assert open_dataset(tiny()) is open_dataset(tiny(seeds=2))
    assert open_dataset(tiny()) is not open_dataset(tiny(options={"noise": 0.1}))


@pytest.mark.parametrize("method", ["prune4rel", "uniform", "margin", "kcenter", "small-loss"])
@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_images_that_cannot_be_read_are_not_picked(tmp_path, method, ratio):
    write_images(tmp_path / "images", n=20, broken=[2, 7])
    own = {"dataset": "folder", "data": str(tmp_path / "images"), "options": {"image_size": 8}}
    with pytest.raises(InputError, match="not an image"):
        run(tiny(**own, methods=[method], ratios=[ratio]), tmp_path / "run")
    done = run(tiny(**own, methods=[method], ratios=[ratio], skip_broken=True), tmp_path / "run")
    chosen = Selection.load(done.steps.of(SelectStep)[0].path)
    assert not {2, 7} & set(chosen.indices.tolist())
    assert (chosen.n, len(chosen)) == (20, 6 if ratio < 1 else 18)
    assert chosen.labels.tolist() == open_dataset(done.config).train.labels[chosen.indices].tolist()
    assert "2 of 20 examples could not be read and were not picked" in chosen.notes
    if chosen.scores is not None:
        assert np.flatnonzero(np.isnan(chosen.scores)).tolist() == [2, 7]
