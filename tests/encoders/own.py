"""Encoders of a user's own."""

import numpy as np


def colours(images):
    return np.asarray(images, dtype=np.float64).mean(axis=(1, 2)) / 255


def lengths(texts):
    return [[len(text), text.count(" ")] for text in texts]


def flat(examples):
    return [0.0 for _ in examples]


def endless(examples):
    return np.full((len(examples), 2), np.inf)


def broken(examples):
    return len(examples) / 0


not_a_function = 3
