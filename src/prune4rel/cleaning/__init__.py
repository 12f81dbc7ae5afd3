"""From embeddings and labels as users have them to `Cleaned`: which labels are wrong, what they should be, a folder."""

from prune4rel.cleaning.cleaned import Cleaned, clean
from prune4rel.cleaning.prepare import describe, prepare

__all__ = ["Cleaned", "clean", "describe", "prepare"]
