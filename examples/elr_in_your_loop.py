"""ELR in a loop of your own: one line other than cross-entropy, and batches that say which examples they hold.

    python examples/elr_in_your_loop.py

What the loss remembers of every example are buffers of its own: your checkpoints keep them.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import prune4rel as p4r
from prune4rel.torch import ELRLoss, WithRows

EPOCHS, BATCH, RATE = 30, 64, 0.1


def as_rows(split):
    return torch.from_numpy(split.images[..., 0]).flatten(1) / 255


def train(*, robust=True, noise=0.4, epochs=EPOCHS, seed=0):
    """Train on digits with wrong labels; return the test accuracy."""
    torch.manual_seed(seed)
    data = p4r.load_dataset("digits", noise=noise)
    labels = torch.from_numpy(data.train.labels)
    loader = DataLoader(WithRows(TensorDataset(as_rows(data.train), labels)), batch_size=BATCH, shuffle=True)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    criterion = ELRLoss(labels, n_classes=10, beta=0.7, lambda_elr=3.0)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    for _ in range(epochs):
        for x, y, rows in loader:
            logits = network(x)
            loss = criterion(logits, rows) if robust else nn.functional.cross_entropy(logits, y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        return float((network(as_rows(data.test)).argmax(1).numpy() == data.test.labels).mean())


if __name__ == "__main__":
    for name, robust in (("cross-entropy", False), ("ELR", True)):
        print(f"{name}: {train(robust=robust):.1%} of the test digits right, after training with 40 % wrong labels")
