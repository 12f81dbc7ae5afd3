"""SOP+ in a loop of your own: your network, your optimiser, your batches; the package's loss and its tables.

    python examples/sop_plus_in_your_loop.py

A learner knows no loop. It asks for some views of every example of a batch, says what the loss is, and is told when a
step is done, so that the numbers it keeps for every example can descend, too.
"""

import numpy as np
import torch
from torch import nn

import prune4rel as p4r
from prune4rel.learners import Examples, Setting, make_learner

EPOCHS, BATCH, RATE = 30, 64, 0.07


def make_network():
    """Any module that turns a batch into logits."""
    convolutions = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
    return nn.Sequential(convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def weak(images, generator):
    """Move every image of a batch by at most one pixel."""
    shifts = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()
    return torch.stack([image.roll(shift, (1, 2)) for image, shift in zip(images, shifts, strict=True)])


def strong(images, generator):
    """Add noise besides."""
    return weak(images, generator) + 0.2 * torch.randn(images.shape, generator=generator)


def train(learner_name="sop+", *, noise=0.4, epochs=EPOCHS, seed=0):
    """Train on digits with wrong labels; return the test accuracy."""
    torch.manual_seed(seed)
    data = p4r.load_dataset("digits", noise=noise)
    images = torch.from_numpy(data.train.images[..., :1].astype(np.float32) / 255).permute(0, 3, 1, 2)
    labels = torch.from_numpy(data.train.labels)
    learner = make_learner(learner_name, Setting(make_network, data.train.labels, n_classes=10, epochs=epochs))
    optimiser = torch.optim.SGD(learner.networks.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    generator = torch.Generator().manual_seed(seed)
    views = {"weak": weak, "strong": strong}
    for epoch in range(epochs):
        learner.train()
        (one,) = learner.passes(epoch)
        (stream,) = one.streams
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            shown = tuple(views[name](images[rows], generator) for name in stream.views)
            loss = one.loss((Examples(rows, shown, labels[rows], len(rows)),), ())
            optimiser.zero_grad()
            loss.total.backward()
            optimiser.step()
            learner.after_step(0)
        schedule.step()
    learner.eval()
    test = torch.from_numpy(data.test.images[..., :1].astype(np.float32) / 255).permute(0, 3, 1, 2)
    with torch.no_grad():
        return float((learner.predict(test).argmax(1).numpy() == data.test.labels).mean())


if __name__ == "__main__":
    for name in ("cross-entropy", "sop+"):
        print(f"{name}: {train(name):.1%} of the test digits right, after training with 40 % wrong labels")
