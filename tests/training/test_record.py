import numpy as np
import pytest
import torch
from tests.oracles.history import histories

from prune4rel import InputError
from prune4rel.learners.learner import Examples, Loss
from prune4rel.loading.schedule import Ranks
from prune4rel.training.step import Record

CPU = torch.device("cpu")


def step(record, rows, labels, logits=None, loss=1.0, network=0, **parts):
    some = Examples(torch.tensor(rows), (), torch.tensor(labels), len(rows))
    said = None if logits is None else torch.as_tensor(logits)
    named = {name: torch.tensor(value) for name, value in parts.items()}
    record.add(Loss(torch.tensor(loss), named, said), (some,), network=network)


def test_means_over_the_steps_of_an_epoch():
    record = Record(4, 2, (), Ranks(), CPU)
    step(record, [0, 1], [0, 1], [[1.0, 0.0], [1.0, 0.0]], loss=1.0, fit=0.5)
    step(record, [2], [1], [[0.0, 1.0]], loss=2.0, fit=1.0)
    step(record, [3], [1], loss=3.0, other=7.0)
    assert record.summary() == {"loss": 2.0, "fit": 0.75, "other": 7.0, "train_accuracy": 2 / 3}
    record.begin_epoch()
    step(record, [3], [1], loss=5.0)
    assert record.summary() == {"loss": 5.0}


def test_histories_by_hand():
    record = Record(3, 2, ["forgetting", "aum"], Ranks(), CPU)
    right, wrong = [2.0, 0.0], [0.0, 2.0]
    margin = np.tanh(1.0)  # of the probabilities of these logits
    for said in ([right, wrong], [wrong, wrong], [right, wrong], [wrong, wrong]):
        step(record, [2, 0], [0, 0], said)
    found = record.histories()
    assert found["forgetting"].tolist() == [np.inf, np.inf, 2.0]
    assert found["aum"].tolist() == pytest.approx([-margin, 0.0, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_histories_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    m, n_classes, epochs = 7, 3, 6
    labels = rng.integers(0, n_classes, m)
    record = Record(m, n_classes, ["forgetting", "aum"], Ranks(), CPU)
    said = []
    for _ in range(epochs):
        order = rng.permutation(m)[:6]
        for rows in (order[:4], order[4:]):
            logits = rng.normal(size=(len(rows), n_classes)).round(1)
            said += zip(rows.tolist(), logits, strict=True)
            step(record, rows, labels[rows], logits)
            step(record, rows, labels[rows], -logits, network=1)
    forgetting, aum = histories(said, labels)
    found = record.histories()
    np.testing.assert_array_equal(found["forgetting"], forgetting)
    np.testing.assert_allclose(found["aum"], aum, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_step_whose_loss_is_no_number(bad):
    record = Record(2, 2, (), Ranks(), CPU)
    record.begin_epoch()
    step(record, [0], [0])
    assert record.first_bad_step() is None
    step(record, [0], [0], loss=bad)
    step(record, [0], [0], loss=np.nan)
    assert record.first_bad_step() == 1


def test_it_is_saved_and_restored():
    first, second = (Record(3, 2, ["aum"], Ranks(), CPU) for _ in range(2))
    step(first, [1, 2], [0, 1], [[1.0, 0.0], [1.0, 0.0]], fit=2.0)
    second.load_state_dict(first.state_dict())
    second.names[:] = first.names
    assert second.summary() == first.summary()
    assert torch.equal(second.histories()["aum"], first.histories()["aum"])


def test_unknown_histories_and_learners_that_mix_are_refused():
    with pytest.raises(InputError, match="did you mean 'forgetting'"):
        Record(1, 2, ["forgeting"], Ranks(), CPU)
    record = Record(1, 2, ["forgetting"], Ranks(), CPU)
    step(record, [0], [0])
    with pytest.raises(InputError, match="forgetting cannot be recorded with this learner, which mixes"):
        record.histories()
