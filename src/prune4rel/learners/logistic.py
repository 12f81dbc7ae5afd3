"""Logistic regression on what every label is judged to be: for features, and in seconds."""

import torch
from torch.nn.functional import log_softmax

from prune4rel.errors import InputError
from prune4rel.judging.logistic import fit_logistic
from prune4rel.learners.learner import Learner, Pass, Predict, Setting
from prune4rel.learners.presets import register_learner


@register_learner("logistic")
class Logistic(Learner):
    """Logistic regression on what labels are judged to be, out of sample; for features. Fits at once, takes no steps.

    Labels are judged as `prune4rel clean` does it, those of all examples, also where few are trained on. What is
    learnt are the probabilities of every class, so that a doubtful label counts for what it may be. The strength of
    the penalty is chosen by held-out examples.
    """

    at_once = True
    network = "linear"
    judges = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        if setting.judged is None or setting.rows is None:
            raise InputError("learner 'logistic' needs labels that were judged: a judgement of every one", "learner")
        self.judged = setting.judged.probabilities[setting.rows]
        self.found = 0.0

    def begin_epoch(self, epoch: int, predict: Predict) -> None:
        """Fit."""
        del epoch
        (network,) = self.model_networks()
        rows = predict.embed(network).float().numpy()
        fitted = fit_logistic(rows, self.judged, seed=self.setting.seed)
        with torch.no_grad():
            network.head.weight.copy_(torch.from_numpy(fitted.weights.T.copy()))
            network.head.bias.copy_(torch.from_numpy(fitted.biases.copy()))
        logs = log_softmax(torch.from_numpy(fitted.logits(rows)), dim=1)
        self.found = -float((torch.from_numpy(self.judged) * logs).sum(dim=1).mean())

    def passes(self, epoch: int) -> list[Pass]:
        """Return none: nothing is left to do."""
        del epoch
        return []

    def describe(self) -> dict[str, float]:
        """Return the mean cross-entropy with what labels are judged to be."""
        return {"loss": self.found}
