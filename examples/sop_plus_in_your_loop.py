"""SOP+ in a loop of your own: your network, your optimiser, your batches; the loss keeps what it must of every example.

    python examples/sop_plus_in_your_loop.py

Weak and strong views of every image go through the network together; the loss wants to know which examples they are.
"""

import numpy as np
import torch
from torch import nn

import prune4rel as p4r
from prune4rel.torch import SOPPlusLoss

EPOCHS, BATCH, RATE = 30, 64, 0.07


def make_network():
    """Any module that turns a batch into logits."""
    convolutions = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU())
    return nn.Sequential(convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10))


def weak(images):
    """Move every image of a batch by at most one pixel."""
    shifts = torch.randint(-1, 2, (len(images), 2)).tolist()
    return torch.stack([image.roll(shift, (1, 2)) for image, shift in zip(images, shifts, strict=True)])


def as_images(split):
    return torch.from_numpy(split.images[..., :1].astype(np.float32) / 255).permute(0, 3, 1, 2)


def train(*, robust=True, noise=0.4, epochs=EPOCHS, seed=0):
    """Train on digits with wrong labels; return the test accuracy."""
    torch.manual_seed(seed)
    data = p4r.load_dataset("digits", noise=noise)
    images, labels = as_images(data.train), torch.from_numpy(data.train.labels)
    network = make_network()
    criterion = SOPPlusLoss(labels, n_classes=10)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(BATCH):
            shown = weak(images[rows])
            if robust:
                noisy = weak(images[rows]) + 0.2 * torch.randn(shown.shape)
                first, second = network(torch.cat([shown, noisy])).chunk(2)
                loss = criterion(first, second, rows)
            else:
                loss = nn.functional.cross_entropy(network(shown), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        return float((network(as_images(data.test)).argmax(1).numpy() == data.test.labels).mean())


if __name__ == "__main__":
    for name, robust in (("cross-entropy", False), ("SOP+", True)):
        print(f"{name}: {train(robust=robust):.1%} of the test digits right, after training with 40 % wrong labels")
