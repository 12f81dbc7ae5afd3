import numpy as np
import pytest
import torch
from tests.learners.loop import train_on_digits
from tests.learners.tiny import gradient_of, logits_by, some_examples, some_labels, tiny_learner, weights_of
from tests.oracles import learners as oracle
from tests.oracles.memory import SlowMemory, trust
from torch import nn

from prune4rel import select
from prune4rel.learners.trust import trust_in

ROWS = [5, 0, 3, 6]
CLASSES = 3


def unasked(_network):
    raise AssertionError("nobody has to look at all examples")


def judged(seed=0, **options):
    """A learner in the middle of its training, with a memory that doubts some labels, and a batch."""
    learner = tiny_learner("trust", weights_seed=seed, **options)
    generator = torch.Generator().manual_seed(seed)
    learner.memory.add(torch.arange(learner.m), torch.softmax(4 * torch.randn(learner.m, 3, generator=generator), 1))
    learner.begin_epoch(learner.begin, unasked)
    return learner, some_examples(learner, ROWS, 2, seed=seed)


@pytest.mark.parametrize("seed", range(20))
def test_the_rule_is_what_it_says(seed):
    rng = np.random.default_rng(seed)
    m, C = int(rng.integers(1, 40)), int(rng.integers(2, 6))
    p, labels = rng.dirichlet(np.full(C, 0.3), m).round(1) + 1e-3, rng.integers(0, C, m)  # few values: many ties
    strictness, least = float(rng.choice([0.0, 1.0, 2.0])), float(rng.choice([0.0, 0.4, 1.0]))
    own = p[np.arange(m), labels]
    others = np.where(np.arange(C) == labels[:, None], 0, p).max(1)
    found = trust_in(torch.from_numpy(own / others), torch.from_numpy(labels), C, strictness, least)
    np.testing.assert_allclose(found, trust(p.tolist(), labels.tolist(), C, strictness, least))


def test_every_label_counts_until_the_memory_is_asked():
    learner = tiny_learner("trust", trust_from=0.3, refresh=0.25)  # of ten epochs: from the fourth on
    asked = []
    learner.memory.of_labels = lambda labels: asked.append(labels) or (torch.rand(learner.m), torch.rand(learner.m))
    counts = []
    for epoch in range(10):
        learner.begin_epoch(epoch, unasked)
        counts.append(len(asked))
    assert counts == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("contradicted", "all_count"), [(0, True), (1, True), (3, False), (30, False)])
def test_every_label_counts_where_the_memory_contradicts_hardly_any(contradicted, all_count):
    learner = tiny_learner("trust", m=100)
    given = torch.full((100,), 0.6)
    given[:contradicted] = 0.1
    learner.memory.of_labels = lambda _: (given, torch.full((100,), 0.3))
    learner.begin_epoch(learner.begin, unasked)
    assert bool((learner.trusted == 1).all()) == all_count


@pytest.mark.parametrize("base", ["sop+", "cross-entropy"])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradients_of_labels_half_believed(seed, base):
    learner, examples = judged(seed, base=base, sure=0.6, guess=0.8, least=0.2)
    network, aims = learner.networks[0], learner.aims(examples)
    assert len(set(aims.trusted.tolist())) > 1
    theta = weights_of(network)
    frozen_weak = logits_by(theta, examples.views[0])
    labels = examples.labels.tolist()

    def expected(weights):
        weak, strong = (logits_by(weights, view) for view in examples.views)
        total = 0.9 * oracle.kl(frozen_weak, strong)
        corrected = []
        for k, (row, y) in enumerate(zip(weak, labels, strict=True)):
            one = [row], [y]
            if base == "sop+":
                tables = np.zeros(1), np.zeros((1, CLASSES))
                fit, q = oracle.sop(*one, *tables, frozen_logits=[frozen_weak[k]], frozen_v=tables[1])
            else:
                fit, q = oracle.cross_entropy(*one), np.array([oracle.softmax(row)])
            corrected.append(q[0])
            missed = oracle.cross_entropy([strong[k]], [int(aims.guesses[k])])
            total += (float(aims.trusted[k]) * fit + float(aims.believed[k]) * missed) / len(labels)
        return total + 0.1 * oracle.balance(corrected)

    loss = learner.loss((examples,), ())
    assert loss.total.item() == pytest.approx(expected(theta), abs=1e-5)
    loss.total.backward()
    np.testing.assert_allclose(gradient_of(network), oracle.numeric_gradient(expected, theta), atol=1e-5)


def test_a_class_is_learnt_instead_where_the_memory_is_sure():
    learner, examples = judged(sure=0.6)
    p = learner.memory.of(examples.rows)
    aims = learner.aims(examples)
    assert torch.equal(aims.guesses, p.argmax(1))
    torch.testing.assert_close(aims.believed, learner.risen * (1 - aims.trusted) * (p.amax(1) > 0.6))
    assert 0 < learner.risen < 1
    learner.begin_epoch(learner.setting.epochs - 1, unasked)
    assert learner.risen == 1


class Looks:
    """What there is to be seen of everybody."""

    def __init__(self, m):
        self.times, self.embeddings = 0, torch.from_numpy(np.random.default_rng(0).normal(size=(m, 4))).float()

    def embed(self, network):
        assert isinstance(network, nn.Module)
        self.times += 1
        return self.embeddings


@pytest.mark.parametrize("name", ["prune4rel", "small-loss", "facility-location", "uniform"])
def test_trusted_labels_may_be_what_a_method_selects(name):
    learner = tiny_learner("trust", trust_by=name, least=0.3, trust_from=0.3, refresh=0.25)
    memory = torch.rand(learner.m, CLASSES, generator=torch.Generator().manual_seed(3)) ** 3
    learner.memory.values.copy_(memory / memory.sum(1, keepdim=True))
    looks = Looks(learner.m)
    for epoch in range(10):
        learner.begin_epoch(epoch, looks)
        assert set(learner.trusted.tolist()) == ({1.0} if epoch < 3 else {0.0, 1.0})
    p, labels = learner.memory.values, learner.given
    agrees = float((p.argmax(1) == labels).float().mean())
    signals = {"labels": labels.numpy(), "probabilities": p.numpy(), "embeddings": looks.embeddings.numpy()}
    if name in ("small-loss", "uniform"):
        del signals["embeddings"]
    size = max(1, round(max(0.3, agrees) * learner.m))
    expected = select(name, **signals, size=size, balanced=True, seed=learner.setting.seed).indices
    assert torch.nonzero(learner.trusted)[:, 0].tolist() == sorted(expected.tolist())
    assert looks.times == (3 if "embeddings" in signals else 0)


def test_what_was_said_before_the_step_is_remembered():
    learner = tiny_learner("trust", newest=0.5)
    slow = SlowMemory(some_labels().tolist(), CLASSES, 0.5)
    for seed in range(3):
        examples = some_examples(learner, ROWS, 2, seed=seed)
        weak = logits_by(weights_of(learner.networks[0]), examples.views[0])
        learner.loss((examples,), ()).total.backward()
        learner.after_step(0)
        slow.add(ROWS, [oracle.softmax(row) for row in weak])
    np.testing.assert_allclose(learner.memory.of(torch.arange(learner.m)), slow.rows, atol=1e-5)


def test_options_of_no_use_are_refused():
    with pytest.raises(ValueError, match="unknown base 'sop'; did you mean 'sop\\+'"):
        tiny_learner("trust", base="sop")
    with pytest.raises(ValueError, match="least must be between 0 and 1, not 2"):
        tiny_learner("trust", least=2)
    with pytest.raises(ValueError, match="unknown trust_by 'prun4rel'; did you mean 'prune4rel'"):
        tiny_learner("trust", trust_by="prun4rel")
    with pytest.raises(ValueError, match="cannot go by 'forgetting': it needs forgetting"):
        tiny_learner("trust", trust_by="forgetting")


def test_corrects_labels_that_cross_entropy_memorises(memorised):
    loop, true = train_on_digits("trust")
    assert loop.correction(true) > memorised + 0.7
    given, _ = loop.learner.memory.of_labels(loop.labels)
    wrong = loop.labels.numpy() != true
    order = np.argsort(given.numpy(), kind="stable")
    precision = (np.cumsum(wrong[order]) / np.arange(1, len(order) + 1))[wrong[order]].mean()
    assert precision > 0.95
