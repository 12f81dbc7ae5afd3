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

    Examples
    --------
    >>> import numpy as np
    >>> from prune4rel.learners import Setting, make_learner
    >>> from prune4rel.networks import make
    >>> setting = Setting(lambda: make("mlp", 3, shape=(4,)), labels=np.array([0, 1, 2, 0]), n_classes=3)
    >>> [len(speakers(make_learner(name, setting), torch.zeros(2, 4))) for name in ("sop", "elr+", "cores")]
    [1, 2, 1]
    """
    asked: list[nn.Module] = []
    hooks = [network.register_forward_hook(lambda module, *_: asked.append(module)) for network in learner.networks]
    try:
        learner.eval()
        learner.predict(x)
    finally:
        for hook in hooks:
            hook.remove()
    heard = [network for network in learner.networks if any(network is each for each in asked)]
    return nn.ModuleList(heard or learner.networks)
