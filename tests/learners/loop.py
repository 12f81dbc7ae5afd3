"""The training loop a learner is promised, at its plainest: no device, no precision, no recording."""

import functools
import itertools
import math

import numpy as np
import torch
from torch.nn.functional import softmax

from prune4rel.augment import AutoAugment, Operation, PlainView, StrongView, WeakView
from prune4rel.data import load_dataset
from prune4rel.learners import Examples, Setting, make_learner
from prune4rel.networks import make

UNCHANGED = AutoAugment(pairs=(((Operation.IDENTITY, 0.0, 0), (Operation.IDENTITY, 0.0, 0)),))


@functools.cache
def digits(noise_kind="symmetric", noise=0.4, seed=0):
    return load_dataset("digits", noise=noise, noise_kind=noise_kind, seed=seed)


def pixels_of(split):
    return torch.from_numpy(np.ascontiguousarray(split.images[..., 0])).unsqueeze(1)


def views_of(data, padding=0):
    """Views that leave a network room to memorise: weak is plain unless padded."""
    mean, std = data.mean[:1], data.std[:1]
    return {
        "plain": PlainView(mean, std),
        "weak": WeakView(mean, std, padding=padding, mirror_probability=0.0),
        "strong": StrongView(mean, std, UNCHANGED, cutout_size=3, padding=1, mirror_probability=0.0),
    }


def digits_setting(data, *, epochs, seed=0, network="mlp", **options):
    return Setting(
        lambda: make(network, 10, shape=(1, 8, 8), **options), data.train.labels, 10, epochs=epochs, seed=seed
    )


class Loop:
    """Trains a learner on images (m, C, H, W), epoch by epoch."""

    def __init__(self, learner, images, views, *, batch=64, lr=0.1, seed=0):
        self.learner, self.images, self.views, self.batch, self.lr = learner, images, views, batch, lr
        self.labels = learner.given
        self.generator = torch.Generator().manual_seed(seed)
        self.optimisers = [
            torch.optim.SGD(network.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
            for network in learner.networks
        ]
        self.totals = []

    def plain(self, network):
        with torch.no_grad():
            network.eval()
            return network(self.views["plain"](self.images, None))

    def train(self, epochs=None):
        of = self.learner.setting.epochs
        for epoch in range(epochs or of):
            rate = 1e-4 + (self.lr - 1e-4) * (1 + math.cos(math.pi * epoch / of)) / 2
            for optimiser in self.optimisers:
                optimiser.param_groups[0]["lr"] = rate
            self.epoch(epoch)
        return self

    def epoch(self, epoch):
        self.learner.begin_epoch(epoch, self.plain)
        for one in self.learner.passes(epoch):
            for streams in self.batches(one):
                self.step(one, streams)

    def batches(self, one):
        sizes = [min(self.batch, len(stream.rows)) for stream in one.streams]
        rounds = [self.rounds(stream, size) for stream, size in zip(one.streams, sizes, strict=True)]
        return itertools.islice(zip(*rounds, strict=True), len(one.streams[0].rows) // sizes[0])

    def rounds(self, stream, size):
        while True:
            order = torch.from_numpy(stream.rows)[torch.randperm(len(stream.rows), generator=self.generator)]
            for rows in order[: len(order) // size * size].split(size):
                shown = tuple(self.views[name](self.images[rows], self.generator) for name in stream.views)
                yield Examples(rows, shown, self.labels[rows], size)

    def step(self, one, streams):
        for number, network in enumerate(self.learner.networks):
            network.train(number == one.network)
        counts = tuple(examples.batch for examples in streams)
        drawn = one.draw(counts, self.generator) if one.draw else ()
        loss = one.loss(streams, drawn)
        self.optimisers[one.network].zero_grad()
        loss.total.backward()
        self.optimisers[one.network].step()
        self.learner.after_step(one.network)
        self.totals.append(float(loss.total.detach()))

    def predict(self, images):
        self.learner.eval()
        with torch.no_grad():
            return softmax(self.learner.predict(self.views["plain"](images, None)), dim=1)

    def relabelling_accuracy(self, true_labels):
        """Share of all training examples that are given their true label."""
        return float((self.predict(self.images).argmax(1).numpy() == true_labels).mean())

    def correction(self, true_labels):
        """Share of the wrongly labelled training examples that are given their true label."""
        wrong = self.learner.setting.labels != true_labels
        return float((self.predict(self.images).argmax(1).numpy() == true_labels)[wrong].mean())


def train_on_digits(
    name,
    *,
    epochs=30,
    seed=0,
    noise_kind="symmetric",
    batch=64,
    lr=0.1,
    padding=0,
    network="mlp",
    width=128,
    **options,
):
    """A learner trained on noisy digits, as a `Loop`, and the true labels."""
    data = digits(noise_kind, seed=seed)
    torch.manual_seed(seed)
    setting = digits_setting(data, epochs=epochs, seed=seed, network=network, width=width)
    learner = make_learner(name, setting, **options) if isinstance(name, str) else name(setting, **options)
    loop = Loop(learner, pixels_of(data.train), views_of(data, padding), batch=batch, lr=lr, seed=seed)
    return loop.train(), data.train.clean_labels
