"""What every learner promises the training loop."""

import itertools
import threading

import numpy as np
import pytest
import torch
from tests.learners.pretend_ranks import in_ranks
from tests.learners.tiny import CLASSES, tiny_setting
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

from prune4rel.learners import Examples, Setting, list_learners, make_learner
from prune4rel.learners.simclr import SimCLR
from prune4rel.loading.schedule import Ranks
from prune4rel.networks import make

M, DIM, BATCH, EPOCHS = 24, 6, 7, 6
NAMES = ["cores", "cross-entropy", "dividemix", "elr", "elr+", "sop", "sop+", "trust"]
EVERY = [*NAMES, SimCLR]
OPTIONS = {
    "dividemix": {"warmup_epochs": 2, "ramp_epochs": 3, "kappa": 0.4},
    "elr+": {"ramp_steps": 9, "decay_steps": 12},
}
ONE_AT_A_TIME = threading.Lock()


def points(seed=0):
    """Three heaps of points, a third of them under a wrong label."""
    rng = np.random.default_rng(seed)
    true = np.arange(M) % CLASSES
    x = np.eye(CLASSES, DIM)[true] * 2 + rng.normal(size=(M, DIM)) * 0.3
    given = np.where(np.arange(M) % 3 == 2, (true + 1) % CLASSES, true)
    return torch.from_numpy(x), rng.permutation(given)


def made(name, ranks=None, seed=0):
    _, given = points()
    setting = Setting(
        lambda: make("mlp", CLASSES, shape=(DIM,), width=5, depth=1).double(),
        given,
        CLASSES,
        epochs=EPOCHS,
        seed=seed,
        ranks=ranks or Ranks(),
    )
    with ONE_AT_A_TIME:  # weights come from the generator that all threads share
        torch.manual_seed(seed)
        if not isinstance(name, str):
            return name(setting, projected=4).double()
        return make_learner(name, setting, **OPTIONS.get(name, {}))


class Trainer:
    """Epochs on `points`, every batch decided by epoch, pass and step."""

    def __init__(self, learner):
        self.learner = learner
        self.x, _ = points()
        self.optimisers = [torch.optim.SGD(n.parameters(), lr=0.3, momentum=0.9) for n in learner.networks]
        self.totals = []

    def predict(self, network):
        network.eval()
        with torch.no_grad():
            return network(self.x)

    def epoch(self, epoch, *, begun=False):
        if not begun:
            self.learner.begin_epoch(epoch, self.predict)
        for number, one in enumerate(self.learner.passes(epoch)):
            for step, (streams, drawn) in enumerate(self.batches(one, 100 * epoch + 10 * number)):
                self.step(one, streams, drawn)
                assert step < 10

    def batches(self, one, seed):
        generator = torch.Generator().manual_seed(seed)
        sizes = [min(BATCH, len(stream.rows)) for stream in one.streams]
        sources = [self.rounds(s, size, generator) for s, size in zip(one.streams, sizes, strict=True)]
        steps = len(one.streams[0].rows) // sizes[0]
        for streams in itertools.islice(zip(*sources, strict=True), steps):
            drawn = one.draw(tuple(sizes), generator) if one.draw else ()
            yield (streams if one.mixes else tuple(self.share(examples) for examples in streams)), drawn

    def rounds(self, stream, size, generator):
        while True:
            order = torch.from_numpy(stream.rows)[torch.randperm(len(stream.rows), generator=generator)]
            for rows in order[: len(order) // size * size].split(size):
                noise = [torch.randn(size, DIM, dtype=torch.float64, generator=generator) for _ in stream.views]
                views = tuple(self.x[rows] + 0.1 * values for values in noise)
                yield Examples(rows, views, self.learner.given[rows], size)

    def share(self, examples):
        mine = self.learner.ranks.mine
        return Examples(mine(examples.rows), tuple(map(mine, examples.views)), mine(examples.labels), examples.batch)

    def step(self, one, streams, drawn):
        for number, network in enumerate(self.learner.networks):
            network.train(number == one.network)
        loss = one.loss(streams, drawn)
        self.optimisers[one.network].zero_grad()
        loss.total.backward()
        grads = [w.grad for w in self.learner.networks[one.network].parameters() if w.grad is not None]
        self.learner.ranks.reduce_(grads)
        self.optimisers[one.network].step()
        self.learner.after_step(one.network)
        parts = {name: self.learner.ranks.sum(part.detach()).item() for name, part in loss.parts.items()}
        self.totals.append((self.learner.ranks.sum(loss.total.detach()).item(), parts))


def trained(learner, epochs=range(EPOCHS)):
    trainer = Trainer(learner)
    for epoch in epochs:
        trainer.epoch(epoch)
    return trainer


def state_of(learner):
    return {name: values.clone() for name, values in learner.state_dict().items()}


def test_the_list_of_learners_is_complete():
    assert list_learners() == ["sop+", *sorted(["logistic", *NAMES[:6], "trust"])]


@pytest.mark.parametrize("name", EVERY)
def test_same_seed_same_training(name):
    first, second = trained(made(name)), trained(made(name))
    assert first.totals == second.totals
    assert len(first.totals) > EPOCHS
    for one, other in zip(first.learner.state_dict().values(), second.learner.state_dict().values(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("name", EVERY)
def test_ranks_follow_one_process(name, world):
    alone = trained(made(name))
    together = in_ranks(world, lambda ranks: trained(made(name, ranks)))
    for trainer in together:
        for (total, parts), (expected, expected_parts) in zip(trainer.totals, alone.totals, strict=True):
            assert total == pytest.approx(expected, abs=1e-5)
            assert parts == pytest.approx(expected_parts, abs=1e-5)
        for key, values in trainer.learner.state_dict().items():
            torch.testing.assert_close(values, alone.learner.state_dict()[key], atol=1e-5, rtol=1e-4, msg=key)


@pytest.mark.parametrize("after", [1, 3, 4])
@pytest.mark.parametrize("name", EVERY)
def test_state_is_all_there_is_to_know(name, after):
    """Stop once an epoch has begun, go on from the state alone in another learner."""
    begun = Trainer(made(name))
    for epoch in range(after):
        begun.epoch(epoch)
    begun.learner.begin_epoch(after, begun.predict)
    other = Trainer(made(name, seed=0))
    for weights in other.learner.networks.parameters():
        nn.init.constant_(weights, 0.5)
    other.learner.load_state_dict(state_of(begun.learner))
    for trainer in (begun, other):
        trainer.optimisers = Trainer(trainer.learner).optimisers
        trainer.totals = []
        trainer.epoch(after, begun=True)
    assert other.totals == begun.totals
    x = begun.x[:3]
    assert torch.equal(other.learner.eval().predict(x), begun.learner.eval().predict(x))
    assert torch.equal(other.learner.embed(x), begun.learner.embed(x))


@pytest.mark.parametrize("name", EVERY)
def test_state_is_changed_in_place(name):
    """A recorded step goes on reading and writing where it did when it was recorded."""
    trainer = Trainer(made(name))
    where = {key: values.data_ptr() for key, values in trainer.learner.state_dict().items()}
    losses = {}
    for epoch in range(EPOCHS):
        trainer.epoch(epoch)
        for one in trainer.learner.passes(epoch):
            key = (one.network, getattr(one.loss, "__func__", one.loss), len(one.streams))
            losses.setdefault(key, one.loss)
    assert {key: values.data_ptr() for key, values in trainer.learner.state_dict().items()} == where
    assert len(losses) <= 6


@pytest.mark.parametrize("name", EVERY)
def test_nothing_waits_for_the_device(name):
    """Fake tensors have no values: whoever looks at one, or makes a shape of it, is found out."""
    trainer = Trainer(made(name))
    for epoch in range(EPOCHS):
        trainer.learner.begin_epoch(epoch, trainer.predict)
        for one in trainer.learner.passes(epoch):
            streams, drawn = next(trainer.batches(one, 0))
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                total = one.loss(_faked(mode, streams), tuple(map(mode.from_tensor, drawn))).total
            assert total.shape == ()
            for table in (module for module in trainer.learner.modules() if hasattr(module, "_taken")):
                table._taken = None


def _faked(mode, streams):
    fake = mode.from_tensor
    return tuple(Examples(fake(e.rows), tuple(map(fake, e.views)), fake(e.labels), e.batch) for e in streams)


@pytest.mark.parametrize("look", [lambda x: x.sum().item(), lambda x: x[x > 0].sum(), lambda x: bool(x.sum() > 0)])
def test_whoever_looks_at_a_fake_tensor_is_found_out(look):
    with FakeTensorMode() as mode, pytest.raises((DataDependentOutputException, DynamicOutputShapeException)):
        look(mode.from_tensor(torch.ones(3)))


@pytest.mark.parametrize("name", EVERY)
def test_half_precision_reaches_every_weight(name):
    learner = made(name).float()
    trainer = Trainer(learner)
    trainer.x = trainer.x.float()
    for epoch in (0, EPOCHS - 1):
        learner.begin_epoch(epoch, trainer.predict)
        for one in learner.passes(epoch):
            streams, drawn = next(trainer.batches(one, 0))
            streams = tuple(e._replace(views=tuple(view.float() for view in e.views)) for e in streams)
            learner.zero_grad()
            for number, network in enumerate(learner.networks):
                network.train(number == one.network)
            with torch.autocast("cpu", torch.bfloat16):
                loss = one.loss(streams, drawn)
            assert loss.total.dtype == torch.float32
            loss.total.backward()
            for weights in learner.networks[one.network].parameters():
                assert not weights.requires_grad or weights.grad.isfinite().all()
            learner.after_step(one.network)


@pytest.mark.parametrize("name", EVERY)
def test_passes_are_the_same_whenever_they_are_asked_for(name):
    trainer = trained(made(name), range(4))
    first, second = (trainer.learner.passes(3) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert (one.network, one.loss, one.mixes) == (other.network, other.loss, other.mixes)
        for stream, same in zip(one.streams, other.streams, strict=True):
            assert stream.rows.tolist() == same.rows.tolist()
            assert stream.rows.dtype == np.int64


@pytest.mark.parametrize("name", EVERY)
def test_an_example_alone_can_be_learnt(name):
    setting = tiny_setting(1, epochs=4)
    learner = make_learner(name, setting) if isinstance(name, str) else name(setting).double()
    trainer = Trainer(learner)
    trainer.x = torch.ones(1, 4, dtype=torch.float64)
    for epoch in range(4):
        learner.begin_epoch(epoch, trainer.predict)
        for one in learner.passes(epoch):
            assert [len(stream.rows) for stream in one.streams] == [1]
            views = tuple(trainer.x for _ in one.streams[0].views)
            drawn = one.draw((1,), torch.Generator().manual_seed(0)) if one.draw else ()
            trainer.step(one, (Examples(torch.tensor([0]), views, learner.given, 1),), drawn)
    assert all(np.isfinite(total) for total, _ in trainer.totals)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_described_are_numbers(name):
    described = trained(made(name)).learner.describe()
    assert all(isinstance(value, float) and np.isfinite(value) for value in described.values())
