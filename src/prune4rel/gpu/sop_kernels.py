"""The losses of SOP and SOP+ with their gradients, as GPU kernels in Triton: two launches instead of a hundred.

Programs share the rows of a batch. A first kernel adds up losses and corrected predictions in parts; a second puts the
parts together in a fixed order and finds the gradients, which need the mean prediction of the whole batch. Where there
are aims, every example says how much its label counts, and which class its strong view is to learn.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

Weights = tuple[float, float]
"""Of consistency and balance."""

TILE, MOST_ROWS = 2048, 16
"""Numbers a program looks at, and in how many rows at most."""

Aims = tuple[Tensor, Tensor, Tensor]
"""(B,) how much the label counts; the class that the strong view learns, and how much that counts."""

PARTS_OF_LOSS = 6
"""Total, fit, explained, consistency, balance, guess."""


@triton.jit
def _softmax(logits, where, inside, known):  # type: ignore[no-untyped-def]
    """Probabilities and their logarithms; 0 and finite numbers where there is no class."""
    values = tl.where(known, tl.load(logits + where, mask=inside, other=0.0), float("-inf"))
    values -= tl.max(values, 1)[:, None]
    exponentials = tl.exp(values)
    total = tl.sum(exponentials, 1)[:, None]
    return exponentials / total, tl.where(known, values - tl.log(total), 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _explain(  # type: ignore[no-untyped-def]
    logits,
    labels,
    u,
    v,
    count,
    n_classes,
    EPSILON: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Find predictions, errors explained, and corrected predictions on their way, of this program's rows."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLUMNS)
    there, known = i < count, (c < n_classes)[None, :]
    where, inside = i[:, None] * n_classes + c[None, :], there[:, None] & known
    p, log_p = _softmax(logits, where, inside, known)
    label = tl.load(labels + i, mask=there, other=0)
    own = c[None, :] == label[:, None]
    u_own = tl.load(u + i, mask=there, other=0.0)
    v_all = tl.load(v + where, mask=inside, other=0.0)
    U = tl.where(own, tl.minimum(u_own * u_own, 1.0)[:, None], 0.0)
    V = tl.where(own, 0.0, tl.minimum(v_all * v_all, 1.0))
    moved = p + U - V
    raised = tl.where(known, tl.maximum(moved, EPSILON), 0.0)
    total = tl.sum(raised, 1)[:, None]
    share = raised / total
    q = tl.where(known, tl.minimum(tl.maximum(share, EPSILON), 1.0), 0.0)
    said = c[None, :] == tl.argmax(log_p + tl.where(known, 0.0, float("-inf")), 1)[:, None]
    gap = said.to(tl.float32) + U - V - own.to(tl.float32)
    return i, where, inside, there, known, own, u_own, v_all, p, log_p, moved, raised, total, share, q, gap


@triton.jit  # type: ignore[untyped-decorator]
def _add_up(  # type: ignore[no-untyped-def]
    logits,
    labels,
    u,
    v,
    trusted,
    guesses,
    believed,
    sums_of_q,
    sums_of_losses,
    count,
    n_classes,
    PLUS: tl.constexpr,
    AIMED: tl.constexpr,
    EPSILON: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i, where, inside, there, known, own, _, _, p, log_p, _, _, _, _, q, gap = _explain(
        logits, labels, u, v, count, n_classes, EPSILON, ROWS, COLUMNS
    )
    part, of = tl.program_id(0), tl.num_programs(0)
    fit = -tl.log(tl.sum(tl.where(own, q, 0.0), 1))
    error = tl.sum(gap * gap, 1)
    if AIMED:
        weight = tl.load(trusted + i, mask=there, other=0.0)
        fit *= weight
        error *= weight
    tl.store(sums_of_losses + part, tl.sum(tl.where(there, fit, 0.0), 0))
    tl.store(sums_of_losses + of + part, tl.sum(tl.where(there, error, 0.0), 0))
    if PLUS:
        _, log_strong = _softmax(logits, count * n_classes + where, inside, known)
        apart = tl.sum(p * (log_p - log_strong), 1)
        tl.store(sums_of_losses + 2 * of + part, tl.sum(tl.where(there, apart, 0.0), 0))
        to = tl.arange(0, COLUMNS)
        tl.store(sums_of_q + part * COLUMNS + to, tl.sum(tl.where(there[:, None], q, 0.0), 0))
        if AIMED:
            guessed = tl.arange(0, COLUMNS)[None, :] == tl.load(guesses + i, mask=there, other=0)[:, None]
            miss = -tl.sum(tl.where(guessed, log_strong, 0.0), 1) * tl.load(believed + i, mask=there, other=0.0)
            tl.store(sums_of_losses + 3 * of + part, tl.sum(tl.where(there, miss, 0.0), 0))


@triton.jit  # type: ignore[untyped-decorator]
def _send_back(  # type: ignore[no-untyped-def]
    logits,
    labels,
    u,
    v,
    trusted,
    guesses,
    believed,
    sums_of_q,
    sums_of_losses,
    losses,
    d_logits,
    d_u,
    d_v,
    count,
    n_classes,
    consistency,
    balance,
    PLUS: tl.constexpr,
    AIMED: tl.constexpr,
    EPSILON: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    PARTS: tl.constexpr,
):
    i, where, inside, there, known, own, u_own, v_all, p, _, moved, raised, total, share, q, gap = _explain(
        logits, labels, u, v, count, n_classes, EPSILON, ROWS, COLUMNS
    )
    of, parts, c = tl.num_programs(0), tl.arange(0, PARTS), tl.arange(0, COLUMNS)
    present = parts < of
    d_q = tl.where(own, -1.0 / q, 0.0) / count
    d_gap = 2.0 * gap / count
    if AIMED:
        weight = tl.load(trusted + i, mask=there, other=0.0)[:, None]
        d_q *= weight
        d_gap *= weight
    spread = 0.0
    if PLUS:
        every = parts[:, None] * COLUMNS + c[None, :]
        sums = tl.sum(tl.load(sums_of_q + every, mask=present[:, None], other=0.0), 0)
        mean = tl.where(c < n_classes, sums / count, 1.0)
        spread = -tl.sum(tl.log(mean), 0) / n_classes
        d_q -= balance / (n_classes * count * mean)[None, :]
    d_share = tl.where(known & (share >= EPSILON) & (share <= 1.0), d_q, 0.0)
    d_raised = d_share / total - (tl.sum(d_share * raised, 1)[:, None] / total) / total
    d_moved = tl.where(known & (moved >= EPSILON), d_raised, 0.0)
    tl.store(d_logits + where, p * (d_moved - tl.sum(p * d_moved, 1)[:, None]), mask=inside)
    d_own = tl.sum(tl.where(own, d_moved + d_gap, 0.0), 1)
    tl.store(d_u + i, tl.where(u_own * u_own <= 1.0, d_own, 0.0) * 2.0 * u_own, mask=there)
    tl.store(d_v + where, tl.where(own | (v_all * v_all > 1.0), 0.0, -d_gap) * 2.0 * v_all, mask=inside)
    agree, miss = 0.0, 0.0
    if PLUS:
        strong, _ = _softmax(logits, count * n_classes + where, inside, known)
        d_strong = consistency * (strong - p)
        if AIMED:
            guessed = c[None, :] == tl.load(guesses + i, mask=there, other=0)[:, None]
            d_strong += tl.load(believed + i, mask=there, other=0.0)[:, None] * (strong - guessed.to(tl.float32))
        tl.store(d_logits + count * n_classes + where, d_strong / count, mask=inside)
    if tl.program_id(0) == 0:
        fit = tl.sum(tl.load(sums_of_losses + parts, mask=present, other=0.0), 0) / count
        explained = tl.sum(tl.load(sums_of_losses + of + parts, mask=present, other=0.0), 0) / count
        if PLUS:
            agree += tl.sum(tl.load(sums_of_losses + 2 * of + parts, mask=present, other=0.0), 0) / count
            if AIMED:
                miss += tl.sum(tl.load(sums_of_losses + 3 * of + parts, mask=present, other=0.0), 0) / count
        tl.store(losses, fit + explained + consistency * agree + balance * spread + miss)
        tl.store(losses + 1, fit)
        tl.store(losses + 2, explained)
        tl.store(losses + 3, agree)
        tl.store(losses + 4, spread)
        tl.store(losses + 5, miss)


def losses_and_gradients(
    logits: Tensor,
    labels: Tensor,
    u: Tensor,
    v: Tensor,
    weights: Weights | None,
    epsilon: float,
    aims: Aims | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the losses (6,): total and parts; and the gradients of the total by logits, u and v.

    Parameters
    ----------
    logits
        float32 (B, C) of weak views, followed by as many of strong views where there are `weights`.
    labels
        (B,) given.
    u, v
        (B, 1) and (B, C).
    weights
        None for SOP.
    epsilon
        Least corrected prediction.
    aims
        How much every label counts, and what strong views learn; only where there are `weights`.
    """
    count, n_classes = v.shape
    columns = triton.next_power_of_2(n_classes)
    rows = max(1, min(MOST_ROWS, TILE // columns))
    programs = triton.cdiv(count, rows)
    kind = {"PLUS": weights is not None, "AIMED": aims is not None}
    sizes = {**kind, "EPSILON": epsilon, "ROWS": rows, "COLUMNS": columns}
    # where there are no aims their places are never read
    given = logits.detach().contiguous(), labels, u.detach(), v.detach(), *(aims or (u, labels, u))
    sums_of_q = torch.empty((programs, columns), dtype=torch.float32, device=logits.device)
    sums_of_losses = torch.empty((4, programs), dtype=torch.float32, device=logits.device)
    losses = torch.empty(PARTS_OF_LOSS, dtype=torch.float32, device=logits.device)
    gradients = torch.empty_like(given[0]), torch.empty_like(u), torch.empty_like(v)
    _add_up[(programs,)](*given, sums_of_q, sums_of_losses, count, n_classes, **sizes)
    _send_back[(programs,)](
        *given,
        sums_of_q,
        sums_of_losses,
        losses,
        *gradients,
        count,
        n_classes,
        *(weights or (0.0, 0.0)),
        PARTS=triton.next_power_of_2(programs),
        **sizes,
    )
    return losses, *gradients


def fused_losses(
    logits: Tensor,
    labels: Tensor,
    u: Tensor,
    v: Tensor,
    weights: Weights | None,
    epsilon: float,
    aims: Aims | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return what `sop.losses` returns, for a batch that one process holds."""
    total, every = _Fused.apply(logits, u, v, labels, weights, epsilon, aims)  # type: ignore[no-untyped-call]
    return total, list(every[1 : 3 if weights is None else 5 if aims is None else 6].unbind())


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        u: Tensor,
        v: Tensor,
        labels: Tensor,
        weights: Weights | None,
        epsilon: float,
        aims: Aims | None,
    ) -> tuple[Tensor, Tensor]:
        every, *gradients = losses_and_gradients(logits, labels, u, v, weights, epsilon, aims)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(every)
        return every[0].clone(), every

    @staticmethod
    def backward(ctx: Any, pull: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_logits, d_u, d_v = torch._foreach_mul(ctx.saved_tensors, pull)  # noqa: SLF001 - one launch for all
        return d_logits, d_u, d_v, None, None, None, None
