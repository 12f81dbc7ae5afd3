"""Stochastic gradient descent whose rate lives on the device."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from prune4rel.gpu.halves import Halves
from prune4rel.machine import has_triton


class SGD(nn.Module):
    """Gradient descent with momentum, as `torch.optim.SGD` does it, up to the last bit of a product.

    A step that was recorded once can be replayed at any rate, because the rate is a tensor; momenta are there from
    the start, as buffers, so that they are saved and restored like everything else.

    Parameters
    ----------
    parameters
        The tensors to change.
    momentum, nesterov, weight_decay
        As for `torch.optim.SGD`.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> descent = SGD([weight], momentum=0.9, nesterov=True, weight_decay=0.0)
    >>> descent.set_rate(0.1)
    >>> weight.grad = torch.tensor([1.0])
    >>> descent.step()
    >>> weight.data
    tensor([0.8100])
    """

    rate: Tensor

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, momentum: float, nesterov: bool, weight_decay: float
    ) -> None:
        super().__init__()
        self.targets = [parameter for parameter in parameters if parameter.requires_grad]
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        device = self.targets[0].device
        self.register_buffer("rate", torch.zeros((), device=device), persistent=False)
        self.momenta = [torch.zeros_like(parameter, requires_grad=False) for parameter in self.targets]
        for number, momentum_of_one in enumerate(self.momenta):
            self.register_buffer(f"momentum{number}", momentum_of_one)
        self._tables: Any = None

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the steps to come."""
        self.rate.fill_(rate)

    @torch.no_grad()
    def step(self) -> None:
        """Change every tensor along its gradient."""
        present = [k for k, target in enumerate(self.targets) if target.grad is not None]
        if not present:
            return
        gradients: list[Tensor] = [self.targets[k].grad for k in present]  # type: ignore[misc]
        torch._fused_sgd_(  # one launch that reads and writes everything once, at a rate on the device
            [self.targets[k].data for k in present],
            gradients,
            [self.momenta[k] for k in present] if self.momentum else [],
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.rate,
            dampening=0.0,
            nesterov=self.nesterov and self.momentum > 0,
            maximize=False,
            is_first_step=False,  # momenta of zero make the first step like all others
        )

    @torch.no_grad()
    def step_from(self, halves: Halves) -> bool:
        """Change every tensor, those with a rounded copy along the copy's gradient, and round them again, in one go.

        Returns
        -------
        bool
            Whether that was possible. If not, nothing has changed: have the gradients collected, make a `step` and
            have the weights rounded.
        """
        pairs = halves.pairs()
        if not (pairs and self.rate.is_cuda and has_triton()):
            return False
        from prune4rel.gpu.descent_kernels import Tables, fits  # noqa: PLC0415 - imports Triton

        momentum_of = {id(target): momentum for target, momentum in zip(self.targets, self.momenta, strict=True)}
        rows = [(whole, momentum_of[id(whole)], half, half.grad) for whole, half in pairs]
        if not all(row[-1] is not None and fits(*row) for row in rows):  # type: ignore[arg-type]
            return False
        weights, momenta, rounded, gradients = zip(*rows, strict=True)
        if self._tables is None:
            self._tables = Tables(weights, momenta, rounded)
        self._tables.descend(
            gradients, self.rate, momentum=self.momentum, nesterov=self.nesterov, weight_decay=self.weight_decay
        )
        self.step()  # of all others: these have no gradient of their own
        return True
