"""Forgetting: what a model keeps unlearning needs to be seen."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.methods.checks import one_of
from prune4rel.methods.method import Outcome, Request, register_method
from prune4rel.methods.ranking import keep_best
from prune4rel.signals import Floats, Signals

NeverLearnt = Literal["highest", "lowest"]
NEVER_LEARNT: tuple[str, ...] = get_args(NeverLearnt)


@register_method(
    "forgetting",
    needs=("forgetting",),
    cost="one sort",
    by_row=True,
    citation="Toneva, Sordoni, Tachet des Combes, Trischler, Bengio, Gordon: An Empirical Study of Example Forgetting "
    "during Deep Neural Network Learning. ICLR 2019",
)
def forgetting(
    signals: Signals, request: Request, *, never_learnt: NeverLearnt = "highest", same_share: bool = False
) -> Outcome:
    """Keep the examples that were forgotten most often during training.

    score = number of times a right prediction of the given label turned wrong, highest kept.

    Parameters
    ----------
    never_learnt
        Where examples go that were never predicted right (infinity in the signal): ``"highest"``, first, as in
        the original definition; ``"lowest"``, as if never forgotten, which keeps most wrong labels out.
    same_share
        Keep the same share of every class; not together with `balanced`, which keeps the same number.
    """
    if same_share and request.balanced:
        raise InputError("same_share keeps the same share of every class and balanced the same number; choose one")
    scores = forgetting_scores(signals.need("forgetting"), never_learnt)
    outcome = keep_best(scores, signals.labels, request, keep="highest", same_share=same_share)
    outcome.options.update(never_learnt=never_learnt, same_share=same_share)
    return outcome


def forgetting_scores(counts: Floats, never_learnt: NeverLearnt) -> NDArray[np.float64]:
    """(n,) forgetting events, higher is forgotten more often; never-learnt examples count infinity or 0.

    >>> forgetting_scores(np.array([2, np.inf]), "lowest")
    array([2., 0.])
    """
    one_of(never_learnt, "never_learnt", NEVER_LEARNT)
    values = np.asarray(counts, dtype=np.float64)
    return np.where(np.isposinf(values), 0.0, values) if never_learnt == "lowest" else values
