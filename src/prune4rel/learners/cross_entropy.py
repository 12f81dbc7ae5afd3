"""Plain cross-entropy on the given labels: what a learner that trusts them does."""

from prune4rel.learners.learner import Drawn, Learner, Loss, Streams
from prune4rel.learners.losses import cross_entropy, widened
from prune4rel.learners.presets import register_learner


@register_learner("cross-entropy")
class CrossEntropy(Learner):
    """Cross-entropy on weak views; corrects nothing. "Standard" in the paper.

    The loss is -log p(given label), averaged over the batch.
    """

    steady = True

    def loss(self, streams: Streams, drawn: Drawn) -> Loss:
        """Return the mean cross-entropy."""
        del drawn
        (examples,) = streams
        logits = widened(self.networks[0](examples.views[0]))
        return Loss(cross_entropy(logits, examples.labels, examples.batch), {}, logits.detach())
