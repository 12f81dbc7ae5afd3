"""SOP+, DivideMix and their network in plain PyTorch, written down from their papers, as most training code is."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from image_peers import PillowViews


class Numbered(Dataset[tuple[Tensor, Tensor, int]]):
    """Two views of an image, weak and strong unless it is `twice_weak`, and its number."""

    def __init__(self, views: PillowViews, *, twice_weak: bool = False) -> None:
        self.views, self.twice_weak = views, twice_weak

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int]:
        if self.twice_weak:
            return self.views.weak(index), self.views.weak(index), index
        return *self.views[index], index


class PlainBlock(nn.Module):
    """Two convolutions behind batch normalisation and ReLU, and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inside), nn.BatchNorm2d(outside)
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Turn (B, inside, H, W) into (B, outside, H / stride, W / stride)."""
        active = functional.relu(self.bn1(x))
        through: Tensor = self.conv2(functional.relu(self.bn2(self.conv1(active))))
        around: Tensor = self.shortcut(active)
        return through + around


class PlainPreActResNet18(nn.Module):
    """PreAct-ResNet-18 for images of 32 by 32, as it is usually written."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64)
        shapes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
        shapes += [(128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
        self.blocks = nn.Sequential(*[PlainBlock(*shape) for shape in shapes])
        self.linear = nn.Linear(512, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Turn images (B, 3, 32, 32) into logits (B, C)."""
        x = self.blocks(functional.relu(self.bn1(self.conv1(x))))
        logits: Tensor = self.linear(functional.avg_pool2d(x, 4).flatten(1))
        return logits


class PlainSOPPlus:
    """SOP+ as one writes it down: two optimisers, one of them over per-example tables."""

    def __init__(self, network: nn.Module, labels: Tensor, n_classes: int, device: torch.device, *, half: bool) -> None:
        self.network, self.n_classes, self.device, self.half = network.to(device).train(), n_classes, device, half
        self.labels = labels.to(device)
        self.u = nn.Parameter(1e-8 * torch.randn(len(labels), 1, device=device))
        self.v = nn.Parameter(1e-8 * torch.randn(len(labels), n_classes, device=device))
        self.optimiser = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4)
        self.table_optimiser = torch.optim.SGD([{"params": self.u, "lr": 10.0}, {"params": self.v, "lr": 100.0}])

    def step(self, weak: Tensor, strong: Tensor, numbers: Tensor) -> None:
        """Descend once, by the views (B, 3, H, W) of the examples `numbers` (B,)."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            logits = self.network(torch.cat([weak, strong]))
        first, second = logits.float().chunk(2)
        y = functional.one_hot(self.labels[numbers], self.n_classes).float()
        U = (self.u[numbers] ** 2 * y).clamp(0, 1)
        V = (self.v[numbers] ** 2 * (1 - y)).clamp(0, 1)
        p = functional.softmax(first, dim=1)
        q = functional.normalize((p + U - V.detach()).clamp(min=1e-4), p=1, dim=1, eps=1e-4).clamp(1e-4, 1)
        loss = -(y * q.log()).sum(1).mean()
        hard = functional.one_hot(first.argmax(1), self.n_classes).float()
        loss = loss + ((hard + U - V - y) ** 2).sum(1).mean()
        loss = loss + 0.9 * functional.kl_div(
            functional.log_softmax(second, 1), functional.softmax(first.detach(), 1), reduction="batchmean"
        )
        loss = loss - 0.1 * q.mean(0).log().mean()
        self.optimiser.zero_grad()
        self.table_optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.table_optimiser.step()


class PlainDivideMix:
    """DivideMix as one writes it down, one forward pass a view; trains the first of its networks."""

    def __init__(self, networks: list[nn.Module], labels: Tensor, n_classes: int, device: torch.device) -> None:
        self.networks = [network.to(device) for network in networks]
        self.labels, self.n_classes, self.device = labels.to(device), n_classes, device
        self.clean = torch.rand(len(labels), device=device)
        self.mixing = torch.distributions.Beta(4.0, 4.0)
        self.optimiser = torch.optim.SGD(
            networks[0].parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4
        )

    def _said(self, network: int, x: Tensor) -> Tensor:
        return functional.softmax(self.networks[network](x), dim=1)

    def step(self, labelled: tuple[Tensor, Tensor, Tensor], others: tuple[Tensor, Tensor, Tensor]) -> None:
        """Descend once, by two views (B, 3, H, W) and numbers (B,) of labelled and of other examples."""
        self.networks[0].train()
        self.networks[1].eval()
        (x1, x2, numbers), (u1, u2, _) = labelled, others
        with torch.no_grad():
            guessed = torch.stack([self._said(k, u) for k in range(2) for u in (u1, u2)]).mean(0)
            w = self.clean[numbers].unsqueeze(1)
            own = functional.one_hot(self.labels[numbers], self.n_classes).float()
            believed = w * own + (1 - w) * (self._said(0, x1) + self._said(0, x2)) / 2
            targets = [functional.normalize(p**2, p=1, dim=1) for p in (believed, guessed)]
        share = float(self.mixing.sample())
        share = max(share, 1 - share)
        inputs = torch.cat([x1, x2, u1, u2])
        wanted = torch.cat([targets[0], targets[0], targets[1], targets[1]])
        order = torch.randperm(len(inputs), device=self.device)
        logits = self.networks[0](share * inputs + (1 - share) * inputs[order])
        wanted = share * wanted + (1 - share) * wanted[order]
        n, p = 2 * len(numbers), functional.softmax(logits, dim=1)
        loss = -(functional.log_softmax(logits[:n], dim=1) * wanted[:n]).sum(1).mean()
        loss = loss + ((p[n:] - wanted[n:]) ** 2).mean() - p.mean(0).log().mean()
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
