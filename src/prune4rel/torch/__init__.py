"""For PyTorch users: losses for wrong labels, a memory that finds them, data sets and a sampler that go by labels."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("prune4rel.torch needs PyTorch, which is not installed: pip install 'prune4rel[train]'")

from prune4rel.torch.criteria import ELRLoss, SOPLoss, SOPPlusLoss, TrustLoss
from prune4rel.torch.label_memory import LabelMemory
from prune4rel.torch.wrappers import LabelScoreSampler, Relabelled, WithRows

__all__ = [
    "ELRLoss",
    "LabelMemory",
    "LabelScoreSampler",
    "Relabelled",
    "SOPLoss",
    "SOPPlusLoss",
    "TrustLoss",
    "WithRows",
]
