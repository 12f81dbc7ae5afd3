from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
import torch
from tests.training.small import LEARNERS, digits, features, nothing, same_state, trainer_of
from torch import nn

from prune4rel.gpu.streams import WARM, Recorder
from prune4rel.loading.schedule import Ranks
from prune4rel.training.step import Stepper


def one_step(trainer, number=0):
    training = trainer.training
    training.stepper.begin_epoch(0.1)
    training.learner.begin_epoch(0, training.predict)
    one = training.learner.passes(0)[number]
    streams, drawn = next(training.feed.steps(one, 0, number))
    training.stepper(one, streams, drawn)
    return one, streams, drawn


def weights(network):
    return [tensor.detach().clone() for tensor in network.parameters()]


def test_a_step_is_descent_along_the_gradient_of_the_loss():
    trainer, other = trainer_of(features()), trainer_of(features())
    network = other.training.learner.networks[0]
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    _, ((_, (x,), labels, _),), _ = one_step(trainer)
    network.train()
    nn.functional.cross_entropy(network(x), labels).backward()
    optimiser.step()
    for mine, theirs in zip(trainer.training.learner.networks[0].parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_trains_all_weights_of_the_one_network(learner, precision):
    options = {"learner_options": {"warmup_epochs": 0}} if learner == "dividemix" else {}
    trainer = trainer_of(features(), learner, precision=precision, weight_decay=0.0, **options)
    networks = trainer.training.learner.networks
    before = [weights(network) for network in networks]
    one, _, _ = one_step(trainer)
    for number, network in enumerate(networks):
        moved = [not torch.equal(a, b) for a, b in zip(before[number], network.parameters(), strict=True)]
        assert all(moved) if number == one.network else not any(moved)
        assert network.training == (number == one.network)


def test_gradients_are_clipped_to_the_norm_asked_for():
    free, clipped = (
        trainer_of(features(), momentum=0.0, weight_decay=0.0),
        trainer_of(features(), momentum=0.0, weight_decay=0.0, clip=1e-3),
    )
    lengths = []
    for trainer in (free, clipped):
        network = trainer.training.learner.networks[0]
        before = weights(network)
        one_step(trainer)
        change = torch.cat([(a - b).flatten() for a, b in zip(before, network.parameters(), strict=True)])
        lengths.append(change.detach().norm().item() / 0.1)
    assert lengths[0] > 1e-2
    assert lengths[1] == pytest.approx(1e-3, rel=1e-2)


def test_averages_follow_the_network_that_was_trained():
    trainer = trainer_of(features(), "elr+", ema=0.5)
    first, second = trainer.training.stepper.averages
    before = [tensor.clone() for tensor in second._kept]
    one_step(trainer)
    network = trainer.training.learner.networks[0]
    assert all(map(torch.equal, before, second._kept))
    assert not torch.equal(first._kept[0], network.layers[0].weight)


def test_gradients_are_summed_over_ranks_before_anything_is_done_with_them():
    class Doubling(Ranks):
        def reduce_(self, gradients):
            for gradient in gradients:
                gradient.mul_(2)

    changes = []
    for ranks in (Ranks(), Doubling()):
        trainer = trainer_of(features(), momentum=0.0, weight_decay=0.0)
        trainer.training.learner.ranks = ranks
        network = trainer.training.learner.networks[0]
        before = weights(network)
        one_step(trainer)
        changes.append([b - a for a, b in zip(before, network.parameters(), strict=True)])
    for once, twice in zip(*changes, strict=True):
        torch.testing.assert_close(2 * once, twice, rtol=1e-4, atol=1e-6)


def test_forgetting_frees_gradients():
    trainer = trainer_of(features())
    one_step(trainer)
    assert any(p.grad is not None for p in trainer.training.learner.parameters())
    trainer.training.stepper.forget()
    assert all(p.grad is None for p in trainer.training.learner.parameters())


def test_bfloat16_trains_about_as_float32():
    losses = []
    for precision in ("float32", "bfloat16"):
        trainer = trainer_of(features(), "sop+", precision=precision, epochs=6, lr=0.1)
        losses.append([trainer.training.run_epoch(nothing)["loss"] for _ in range(6)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.1)
    assert losses[1][-1] < losses[1][0]


class FakeStream:
    """A stream on which everything has always happened already."""

    def wait_stream(self, other):
        pass


@pytest.fixture
def recording(monkeypatch):
    """CUDA graphs without CUDA: while one is recorded nothing runs, and a replay runs what was recorded."""
    graphs, real = [], Stepper._run

    class FakeGraph:
        recorded = None
        replays = 0

        def __init__(self):
            graphs.append(self)

        def replay(self):
            self.replays += 1
            real(*self.recorded)

    capturing = []

    @contextmanager
    def graph(target, *, pool, stream, capture_error_mode):
        assert (pool, capture_error_mode) == ("pool", "thread_local")
        assert isinstance(stream, FakeStream)
        capturing.append(target)
        yield
        capturing.pop()

    def run(self, one, streams, drawn):
        if capturing:
            capturing[-1].recorded = (self, one, streams, drawn)
        else:
            real(self, one, streams, drawn)

    for name, fake in {
        "CUDAGraph": FakeGraph,
        "graph": graph,
        "graph_pool_handle": lambda: "pool",
        "synchronize": nothing,
        "current_stream": lambda _device: FakeStream(),
        "stream": lambda _stream: nullcontext(),
        "device": lambda _device: nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(Stepper, "_run", run)
    return graphs


def run_with(learner, *, recorded, dataset=None, **options):
    options = {"epochs": 4, **options}
    if learner == "dividemix":
        options["learner_options"] = {"warmup_epochs": 2}
    training = trainer_of(dataset or features(), learner, **options).training
    if recorded:
        training.stepper.recorder = Recorder(None, FakeStream())
    for _ in range(4):
        training.run_epoch(nothing)
    return training


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_recorded_step_is_replayed_with_new_inputs_in_the_old_places(recording, learner):
    ours, theirs = run_with(learner, recorded=True), run_with(learner, recorded=False)
    assert recording
    assert sum(graph.replays for graph in recording) > ours.steps / 4
    assert same_state(ours, theirs)


def test_every_kind_of_step_is_recorded_once_after_a_few_as_they_are(recording):
    training = run_with("cross-entropy", recorded=True)
    assert [graph.replays for graph in recording] == [training.steps - WARM]
    training = run_with("elr+", recorded=True)
    assert len(recording) == 1 + 2
    training.stepper.forget()
    training.run_epoch(nothing)
    assert len(recording) == 1 + 2


def test_only_so_many_kinds_are_recorded(recording, monkeypatch):
    monkeypatch.setattr("prune4rel.gpu.streams.MOST_GRAPHS", 1)
    ours, theirs = run_with("elr+", recorded=True), run_with("elr+", recorded=False)
    assert len(recording) == 1
    assert same_state(ours, theirs)


def test_images_are_recorded_with_channels_last(recording):
    run_with("sop+", recorded=True, dataset=digits())
    _, _, ((_, views, _, _),), _ = recording[0].recorded
    assert all(view.is_contiguous(memory_format=torch.channels_last) for view in views)
