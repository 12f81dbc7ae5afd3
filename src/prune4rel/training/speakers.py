"""Which of a learner's networks are the model."""

import torch
from torch import Tensor, nn

from prune4rel.learners import Learner


@torch.no_grad()
def speakers(learner: Learner, x: Tensor) -> nn.ModuleList:
    """Return the networks whose mean the learner predicts by at present: those that run when it is asked.

    Parameters
    ----------
    learner
        Put into evaluation mode.
    x
        (B, ...) some inputs on its device.
    """
    asked: list[nn.Module] = []
    hooks = [
        network.register_forward_hook(lambda module, *_: asked.append(module)) for network in learner.networks
    ]
    try:
        learner.eval()
        learner.predict(x)
    finally:
        for hook in hooks:
            hook.remove()
    return nn.ModuleList(network for network in learner.networks if any(network is each for each in asked))
