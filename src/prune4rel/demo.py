"""A small real task: scikit-learn's digits with wrong labels, and signals from a quick classifier."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from prune4rel.signals import Signals

TEST_SHARE = 0.25
HIDDEN = 64


@dataclass(frozen=True)
class Task:
    """Noisy training examples with what a warm-up learnt of them, and clean examples to test on."""

    signals: Signals
    features: NDArray[np.float64]
    clean_labels: NDArray[np.int64]
    test_features: NDArray[np.float64]
    test_labels: NDArray[np.int64]

    @property
    def noise(self) -> float:
        """Share of wrong labels in the training set."""
        return float((self.signals.labels != self.clean_labels).mean())

    def noise_in(self, indices: NDArray[np.int64]) -> float:
        """Share of wrong labels among some examples."""
        return float((self.signals.labels[indices] != self.clean_labels[indices]).mean())

    def accuracy_from(self, indices: NDArray[np.int64]) -> float:
        """Test accuracy of a plain logistic regression trained on some examples with their given labels."""
        model = LogisticRegression(max_iter=1000, C=0.1)
        model.fit(self.features[indices], self.signals.labels[indices])
        return float(model.score(self.test_features, self.test_labels))


def digits_task(noise: float = 0.4, seed: int = 0) -> Task:
    """Digits with a share of the labels moved to the next class, and signals from a briefly trained network."""
    rng = np.random.default_rng(seed)
    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    order = rng.permutation(len(images))
    cut = round(TEST_SHARE * len(images))
    test, train = order[:cut], order[cut:]
    clean = labels[train].astype(np.int64)
    wrong = rng.choice(len(train), size=round(noise * len(train)), replace=False)
    noisy = clean.copy()
    noisy[wrong] = (noisy[wrong] + 1) % 10
    model = MLPClassifier((HIDDEN,), max_iter=1, warm_start=True, random_state=seed, learning_rate_init=0.01)
    for _ in range(10):
        model.partial_fit(images[train], noisy, classes=np.arange(10))
    hidden = np.maximum(0.0, images[train] @ model.coefs_[0] + model.intercepts_[0])
    signals = Signals(labels=noisy, probabilities=model.predict_proba(images[train]), embeddings=hidden)
    return Task(signals, images[train], clean, images[test], labels[test].astype(np.int64))
