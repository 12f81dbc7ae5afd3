import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import DIM, gradient_of, some_examples, tiny_learner
from tests.oracles import learners as oracle

from prune4rel.learners import list_learners
from prune4rel.learners.simclr import SimCLR, nt_xent
from prune4rel.loading.schedule import Ranks


def some_views(n, seed=0):
    return torch.randn(2, n, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_loss_and_gradient(n, temperature):
    views = some_views(n).requires_grad_()
    total = nt_xent(views[0], views[1], n, temperature, Ranks())
    total.backward()
    assert total.item() == pytest.approx(oracle.nt_xent(*views.detach().numpy(), temperature))
    expected = oracle.numeric_gradient(lambda both: oracle.nt_xent(*both, temperature), views.detach().numpy())
    np.testing.assert_allclose(views.grad.numpy(), expected, atol=1e-7)


def test_half_precision_is_widened_first():
    views = some_views(4).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        total = nt_xent(views[0], views[1], 4, 0.5, Ranks())
    assert total.dtype == torch.float32
    assert total.item() == pytest.approx(oracle.nt_xent(*views.double().numpy(), 0.5), rel=1e-5)


def test_everything_but_the_classifier_is_trained():
    learner = tiny_learner(SimCLR, projected=6).double()
    examples = some_examples(learner, [0, 1, 2], 2)
    learner.loss((examples,), ()).total.backward()
    encoder = learner.networks[0]
    assert all(weights.grad is None for weights in encoder.network.head.parameters())
    assert gradient_of(encoder.projection).any()
    assert encoder(examples.views[0]).shape == (3, 6)
    assert learner.embed(examples.views[0]).shape == (3, DIM)
    assert learner.predict(examples.views[0]).shape == (3, 3)
    assert [stream.views for stream in learner.passes(0)[0].streams] == [("strong", "strong")]


def test_labels_do_not_matter():
    learner = tiny_learner(SimCLR).double()
    examples = some_examples(learner, [0, 1, 2], 2)
    other = examples._replace(labels=(examples.labels + 1) % 3)
    assert torch.equal(learner.loss((examples,), ()).total, learner.loss((other,), ()).total)


def test_is_no_learner_of_the_list():
    assert "simclr" not in list_learners()


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match="temperature must be above 0"):
        tiny_learner(SimCLR, temperature=0)


def class_found(loop, true):
    """Share of examples whose one strong view is nearest to a strong view of another example of the same class."""
    generator = torch.Generator().manual_seed(0)
    views = [loop.views["strong"](loop.images, generator) for _ in range(2)]
    with torch.no_grad():
        first, second = (torch.nn.functional.normalize(loop.learner.embed(view), dim=1) for view in views)
    nearest = (first @ second.T).fill_diagonal_(-1).argmax(1).numpy()
    return float((true[nearest] == true).mean())


def test_views_of_a_class_move_together_without_labels():
    untrained, true = train_on_digits(SimCLR, epochs=1, lr=0.0, network="small-cnn", width=8)
    trained, _ = train_on_digits(SimCLR, epochs=15, lr=0.3, network="small-cnn", width=8)
    assert class_found(trained, true) > class_found(untrained, true) + 0.1
    assert trained.totals[-1] < untrained.totals[0] - 0.5
