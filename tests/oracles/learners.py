"""Learners' losses written out example by example, class by class, in plain Python numbers.

What gradients do not flow through is passed separately as `frozen_...`, so that a numeric derivative by the other
arguments is the derivative a learner has to have.
"""

import math

import numpy as np

EPSILON = 1e-4


def softmax(row):
    largest = max(row)
    powers = [math.exp(value - largest) for value in row]
    return [power / sum(powers) for power in powers]


def one_hot(label, n_classes):
    return [1.0 if c == label else 0.0 for c in range(n_classes)]


def clamp(value, low, high):
    return min(max(value, low), high)


def cross_entropy(logits, labels):
    return sum(-math.log(softmax(row)[y]) for row, y in zip(logits, labels, strict=True)) / len(labels)


def soft_cross_entropy(logits, targets):
    total = 0.0
    for row, target in zip(logits, targets, strict=True):
        total -= sum(t * math.log(p) for t, p in zip(target, softmax(row), strict=True))
    return total / len(targets)


def kl(first, second):
    """Mean KL of two lists of logits, from the first to the second."""
    total = 0.0
    for a, b in zip(first, second, strict=True):
        total += sum(p * (math.log(p) - math.log(q)) for p, q in zip(softmax(a), softmax(b), strict=True))
    return total / len(first)


def sop(logits, labels, u, v, *, frozen_logits, frozen_v):
    """Loss and corrected predictions q of SOP; `frozen_v` is v as it enters q."""
    total, corrected = 0.0, []
    for row, y, u_i, v_i, frozen, v_in_q in zip(logits, labels, u, v, frozen_logits, frozen_v, strict=True):
        C = len(row)
        p = softmax(row)
        U = [clamp(u_i**2, 0, 1) if c == y else 0.0 for c in range(C)]
        V = [0.0 if c == y else clamp(v_i[c] ** 2, 0, 1) for c in range(C)]
        V_in_q = [0.0 if c == y else clamp(v_in_q[c] ** 2, 0, 1) for c in range(C)]
        q = [max(p[c] + U[c] - V_in_q[c], EPSILON) for c in range(C)]
        q = [clamp(value / sum(q), EPSILON, 1) for value in q]
        likeliest = max(range(C), key=lambda c: frozen[c])
        error = sum(((c == likeliest) + U[c] - V[c] - (c == y)) ** 2 for c in range(C))
        total += -math.log(q[y]) + error
        corrected.append(q)
    return total / len(labels), np.array(corrected)


def balance(q):
    mean = np.asarray(q).mean(axis=0)
    return -sum(math.log(value) for value in mean) / len(mean)


def memory(t, p, beta):
    """ELR's memory of one example after another prediction; p as it is, clamped or not."""
    return [beta * old + (1 - beta) * new / sum(p) for old, new in zip(t, p, strict=True)]


def clamped(p):
    return [clamp(value, EPSILON, 1 - EPSILON) for value in p]


def disagreement(logits, memories):
    total = 0.0
    for row, t in zip(logits, memories, strict=True):
        total += math.log(1 - sum(a * b for a, b in zip(t, clamped(softmax(row)), strict=True)))
    return total / len(memories)


def sharpen(p, temperature):
    powers = [value ** (1 / temperature) for value in p]
    return [power / sum(powers) for power in powers]


def labelled_target(label, w, said, temperature):
    """`said` holds the trained network's p for both views."""
    mean = np.mean(said, axis=0)
    mixed = [w * (c == label) + (1 - w) * mean[c] for c in range(len(mean))]
    return sharpen(mixed, temperature)


def mix(values, partners, share):
    values = np.asarray(values, dtype=float)
    return np.array([share * values[i] + (1 - share) * values[partners[i]] for i in range(len(values))])


def mix_match(logits, targets, n_labelled, weight_u, penalty):
    """DivideMix's loss of mixed inputs, of which the first 2 · n_labelled count as labelled."""
    first = 2 * n_labelled
    C = len(logits[0])
    total = soft_cross_entropy(logits[:first], targets[:first])
    if len(logits) > first:
        squares = [
            (p - t) ** 2
            for row, target in zip(logits[first:], targets[first:], strict=True)
            for p, t in zip(softmax(row), target, strict=True)
        ]
        total += weight_u * sum(squares) / len(squares)
    mean = np.mean([softmax(row) for row in logits], axis=0)
    return total + penalty * sum(1 / C * math.log(1 / C / value) for value in mean)


def sieve_score(row, label):
    surprises = [-math.log(p + 1e-8) for p in softmax(row)]
    return surprises[label] - sum(surprises) / len(row)


def cores(logits, labels, prior, beta, *, frozen_logits, sieving, at=0.0):
    total, kept = 0.0, 0
    for row, y, frozen in zip(logits, labels, frozen_logits, strict=True):
        if sieving and sieve_score(frozen, y) > at:
            continue
        kept += 1
        p = softmax(row)
        total += -math.log(p[y]) - beta * sum(
            share * -math.log(value + 1e-8) for share, value in zip(prior, p, strict=True)
        )
    return total / max(kept, 1) / (1 + beta)


def nt_xent(first, second, temperature):
    z = [np.asarray(row) / np.linalg.norm(row) for row in [*first, *second]]
    n = len(first)
    total = 0.0
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        others = sum(math.exp(float(z[i] @ z[k]) / temperature) for k in range(2 * n) if k != i)
        total -= math.log(math.exp(float(z[i] @ z[partner]) / temperature) / others)
    return total / (2 * n)


def numeric_gradient(function, point, step=1e-6):
    """Derivative of a function of an array by each of its entries, by central differences."""
    point = np.asarray(point, dtype=np.float64)
    gradient = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        there, back = point.copy(), point.copy()
        there[place] += step
        back[place] -= step
        gradient[place] = (function(there) - function(back)) / (2 * step)
    return gradient
