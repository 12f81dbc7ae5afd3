"""Trust in a loop of your own: a label is learnt as far as a memory of the network's own predictions agrees with it.

    python examples/trust_in_your_loop.py

The memory tells at the end which labels are wrong, too.
"""

import torch
from torch import nn

import prune4rel as p4r
from prune4rel.torch import LabelMemory, TrustLoss

EPOCHS, BATCH, RATE = 30, 64, 0.1


def as_rows(split):
    return torch.from_numpy(split.images[..., 0]).flatten(1) / 255


def train(*, robust=True, noise=0.4, epochs=EPOCHS, seed=0):
    """Train on digits with wrong labels; return the test accuracy, and what the training says of its labels."""
    torch.manual_seed(seed)
    data = p4r.load_dataset("digits", noise=noise)
    x, labels = as_rows(data.train), torch.from_numpy(data.train.labels)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    criterion = TrustLoss(labels, n_classes=10, epochs=epochs)
    memory = LabelMemory(labels, class_names=data.class_names)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        criterion.begin_epoch(epoch)
        for rows in torch.randperm(len(labels)).split(BATCH):
            weak = x[rows] + 0.05 * torch.randn(len(rows), 64)
            strong = x[rows] + 0.3 * torch.randn(len(rows), 64)
            first, second = network(torch.cat([weak, strong])).chunk(2)
            memory.add(rows, first)
            loss = criterion(first, second, rows) if robust else nn.functional.cross_entropy(first, labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        right = (network(as_rows(data.test)).argmax(1).numpy() == data.test.labels).mean()
    return float(right), memory.to_labels()


if __name__ == "__main__":
    for name, robust in (("cross-entropy", False), ("trust", True)):
        accuracy, found = train(robust=robust)
        print(f"{name}: {accuracy:.1%} of the test digits right; {found.noise_rate:.0%} of the labels look wrong")
