import pytest
import torch
from tests.training.small import LEARNERS, features, nothing, trainer_of


@pytest.mark.parametrize("learner", LEARNERS)
def test_their_mean_is_what_the_learner_says(learner):
    trainer = trainer_of(features(), learner, epochs=3)
    x = torch.randn(5, 6)
    for _ in range(3):
        trainer.training.run_epoch(nothing)
        model = trainer.training.learner.model_networks()
        with torch.no_grad():
            mean = torch.stack([network(x) for network in model]).mean(0)
            torch.testing.assert_close(mean, trainer.training.learner.predict(x))


def test_cores_speaks_by_the_network_of_its_second_half():
    trainer = trainer_of(features(), "cores", epochs=4, learner_options={"second_from": 0.5})
    found = []
    for _ in range(4):
        trainer.training.run_epoch(nothing)
        (speaker,) = trainer.training.learner.model_networks()
        found.append([speaker is network for network in trainer.training.learner.networks].index(True))
    assert found == [0, 0, 1, 1]
