"""SOP+ in plain PyTorch, written down from its paper, as most training code is."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from image_peers import PillowViews


class Numbered(Dataset[tuple[Tensor, Tensor, int]]):
    """Both views of an image, and its number."""

    def __init__(self, views: PillowViews) -> None:
        self.views = views

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int]:
        return *self.views[index], index


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
