import numpy as np
import pytest
import torch
from tests.learners.tiny import M, some_examples, some_labels, tiny_learner

from prune4rel.learners import Learner, Table
from prune4rel.loading.schedule import Ranks


@pytest.mark.parametrize("seed", range(5))
def test_a_table_descends_as_plain_gradient_descent_on_all_rows(seed):
    generator = torch.Generator().manual_seed(seed)
    start, slope = torch.randn(6, 2, generator=generator), torch.randn(6, 2, generator=generator)
    table = Table(start.clone(), rate=0.3, ranks=Ranks())
    whole = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([whole], lr=0.3)
    for _ in range(4):
        rows = torch.randperm(6, generator=generator)[:3]
        (slope[rows] * table.take(rows) ** 3).sum().backward()
        table.step()
        optimiser.zero_grad()
        (slope[rows] * whole[rows] ** 3).sum().backward()
        optimiser.step()
        torch.testing.assert_close(table.values, whole.detach())


def test_a_table_without_a_gradient_stays():
    table = Table(torch.ones(3, 1), rate=1.0, ranks=Ranks())
    table.step()
    table.take(torch.tensor([0]))
    table.step()
    assert torch.equal(table.values, torch.ones(3, 1))


def test_a_step_is_taken_once():
    table = Table(torch.ones(3, 1), rate=1.0, ranks=Ranks())
    table.take(torch.tensor([0])).sum().backward()
    table.step()
    table.step()
    assert table.values.flatten().tolist() == [0, 1, 1]


def test_a_table_is_state():
    table = Table(torch.ones(3, 1), rate=1.0, ranks=Ranks())
    assert list(table.state_dict()) == ["values"]
    assert not list(table.parameters())


def test_what_every_learner_knows():
    learner = tiny_learner("cross-entropy")
    assert (learner.m, learner.n_classes, learner.notes) == (M, 3, [])
    assert learner.everyone.tolist() == list(range(M))
    assert learner.given.tolist() == some_labels().tolist()
    assert learner.given.dtype == torch.int64
    x = some_examples(learner, [0, 1]).views[0]
    assert torch.equal(learner.embed(x), x)


def test_a_learner_has_to_say_what_its_loss_is():
    with pytest.raises(NotImplementedError, match="needs a loss"):
        Learner.loss(object.__new__(Learner), [], None)


def test_logits_are_the_mean_over_networks():
    learner = tiny_learner("dividemix")
    x = some_examples(learner, [0, 1]).views[0]
    first, second = (network(x).detach().numpy() for network in learner.networks)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(learner.predict(x).detach().numpy(), (first + second) / 2)
