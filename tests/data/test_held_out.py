import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import Split
from prune4rel.data.held_out import hold_out

SPLIT = Split(labels=np.arange(20) % 3, clean_labels=np.arange(20) % 2, features=np.eye(20), ids=np.arange(20))


def test_every_example_is_on_one_side_in_order_and_the_seed_decides():
    train, test = hold_out(SPLIT, 0.25, seed=1)
    assert len(test) == 5
    assert sorted([*train.ids, *test.ids]) == list(range(20))
    assert train.ids.tolist() == sorted(train.ids)
    assert hold_out(SPLIT, 0.25, seed=1)[1].ids.tolist() == test.ids.tolist()
    assert hold_out(SPLIT, 0.25, seed=2)[1].ids.tolist() != test.ids.tolist()


def test_tests_use_true_labels_where_they_are_known():
    _, test = hold_out(SPLIT, 0.25, seed=0)
    assert test.noise_rate == 0
    assert test.labels.tolist() == (test.ids % 2).tolist()


def test_nothing_held_out():
    assert hold_out(SPLIT, 0.0, seed=0) == (SPLIT, None)


@pytest.mark.parametrize(("share", "seed"), [(1.0, 0), (-0.1, 0), (0.99, 0), (0.5, -1)])
def test_impossible_shares_are_refused(share, seed):
    with pytest.raises(InputError):
        hold_out(SPLIT, share, seed)
