"""What is remembered of a training tells which labels are wrong."""

import copy

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import TensorDataset

import prune4rel as p4r
from prune4rel.torch import LabelMemory, LabelScoreSampler, Relabelled, WithRows
from prune4rel.torch.wrappers import RowOrder, given_labels


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    data = p4r.load_dataset("digits", noise=0.2, noise_kind="symmetric")
    x, y = torch.from_numpy(data.train.images[..., 0]).flatten(1) / 255, torch.from_numpy(data.train.labels)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    memory = LabelMemory(y[:-10], class_names=data.class_names, ids=[f"digit {i}" for i in range(len(y) - 10)])
    for _ in range(10):
        for rows in torch.randperm(len(y) - 20).split(64):
            logits = network(x[rows])
            memory.add(rows, logits)
            optimiser.zero_grad()
            nn.functional.cross_entropy(logits, y[rows]).backward()
            optimiser.step()
    return memory, (data.train.labels != data.train.clean_labels)[:-10], data.train.clean_labels[:-10]


def test_wrong_labels_are_found_and_corrected(trained):
    memory, wrong, truth = trained
    labels = memory.to_labels()
    assert average_precision_score(wrong, -labels.label_score) > 0.97
    assert (labels.is_label_issue == wrong)[:-10].mean() > 0.95
    assert (labels.corrected_label == truth).mean() > 0.95
    assert labels.noise_rate == pytest.approx(0.2, abs=0.05)
    np.testing.assert_allclose(labels.noise_matrix.sum(axis=1), 1)


def test_those_that_never_came_along_are_judged_by_nobody(trained):
    labels = trained[0].to_labels()
    assert set(labels.source[-10:]) == {"nobody"}
    assert not labels.is_label_issue[-10:].any()
    assert (labels.label_score[-10:] == 1).all()
    assert labels.about["unseen"] == 10


def test_it_is_saved_and_selected_from(trained, tmp_path):
    trained[0].save(tmp_path / "labels.parquet")
    assert p4r.Labels.load(tmp_path / "labels.parquet").ids[3] == "digit 3"
    chosen = p4r.select("small-loss", trained[0].to_signals(), ratio=0.2, balanced=True)
    assert trained[1][chosen.indices].mean() < 0.03


def test_predictions_come_in_any_form_and_broken_ones_are_passed_over():
    p = torch.tensor([[0.8, 0.2], [0.4, 0.6]])
    for said in (p, p.log(), p.log() + 7):
        memory = LabelMemory([0, 1, 0], newest=0.5)
        memory.add([0, 1], said)
        torch.testing.assert_close(memory.memory.values[:2].argmax(1), torch.tensor([0, 1]))
        first = memory.memory.values.clone()
    torch.testing.assert_close(first[2], torch.tensor([0.5, 0.5]))
    memory.add([0, 2, 2], torch.tensor([[torch.nan, 0.0], [3.0, 0.0], [3.0, 0.0]]))
    assert memory.memory.seen.tolist() == [1, 1, 1]
    assert torch.isfinite(memory.memory.values).all()


def test_nothing_remembered_is_nothing_judged():
    with pytest.raises(p4r.InputError, match="nothing is remembered yet"):
        LabelMemory([0, 1]).to_labels()
    with pytest.raises(p4r.InputError, match=r"expected \(1, 2\)"):
        LabelMemory([0, 1]).add([0], torch.zeros(1, 3))


def table(**more):
    columns = {"given_label": [0, 0, 1], "predicted_label": [0, 1, 1], "label_score": [0.9, 0.1, 0.8]}
    flags = {"is_label_issue": [False, True, False], "confidence": [0.9, 0.9, 0.9], "class_names": ("cat", "dog")}
    return p4r.Labels(**columns | flags | more)


def test_a_data_set_wears_corrected_labels_and_loses_what_was_thrown_out():
    items = [("a", 0), ("b", 0), ("c", 1)]
    assert list(map(Relabelled(items, table()).__getitem__, range(3))) == [("a", 0), ("b", 1), ("c", 1)]
    left = Relabelled(items, table(removed=[True, False, False]))
    assert [left[i] for i in range(len(left))] == [("b", 1), ("c", 1)]
    texts = [{"text": "a", "label": 0}, {"text": "b", "label": 0}, {"text": "c", "label": 1}]
    assert Relabelled(texts, table())[1] == {"text": "b", "label": 1}
    with pytest.raises(p4r.InputError, match="there are 3, but the data set has 2"):
        Relabelled(items[:2], table())


def test_a_sampler_draws_what_fits():
    drawn = np.bincount(list(LabelScoreSampler(table(removed=[False, False, True]), size=1000)), minlength=3)
    assert drawn[2] == 0
    assert drawn[0] == pytest.approx(900, abs=40)
    again = LabelScoreSampler(table(), size=20, seed=4)
    assert list(again) == list(LabelScoreSampler(table(), size=20, seed=4))


def test_rows_are_noted_in_the_order_of_batches():
    loader = torch.utils.data.DataLoader(WithRows([(row,) for row in range(10)]), batch_size=3, shuffle=True)
    order = RowOrder.of(loader)
    assert RowOrder.of(loader) is order
    for _ in range(2):
        for _, rows in loader:
            assert order.next_rows() == rows.tolist()
    order.skip_batches(1)
    batches = [rows.tolist() for _, rows in loader]
    assert [order.next_rows() for _ in batches[1:]] == batches[1:]
    assert (len(order), order.batch_size, order.next_rows()) == (4, 3, [])
    with pytest.raises(p4r.InputError, match="a stream has no rows"):
        RowOrder.of(torch.utils.data.DataLoader([1, 2], batch_size=None))


def test_labels_are_found_in_data_sets_of_the_usual_kinds():
    class Pictures:
        targets = (1, 0, 1)
        classes = ("cat", "dog")

    numbers, names = given_labels(torch.utils.data.Subset(Pictures(), [0, 2]))
    assert (numbers.tolist(), names) == ([1, 1], ("cat", "dog"))
    with pytest.raises(p4r.InputError, match="pass labels="):
        given_labels([1, 2])


def test_labels_are_found_behind_wrappers():
    pictures = [TensorDataset(torch.zeros(n, 3), torch.arange(n) % 2) for n in (2, 3)]
    assert given_labels(torch.utils.data.ConcatDataset(pictures))[0].tolist() == [0, 1, 0, 1, 0]
    assert given_labels(WithRows(pictures[1]))[0].tolist() == [0, 1, 0]
    worn = Relabelled(pictures[1], table(removed=[True, False, False]))
    assert given_labels(worn)[0].tolist() == [int(worn[place][1]) for place in range(2)]


def test_a_checkpoint_holds_what_is_remembered(trained):
    whole, _, _ = trained
    again = LabelMemory(whole.given, class_names=whole.class_names)
    again.load_state_dict(whole.state_dict())
    assert again.to_labels().label_score.tolist() == whole.to_labels().label_score.tolist()
    rows, logits = torch.arange(50), torch.randn(50, 10, generator=torch.Generator().manual_seed(0))
    for memory in (again, copy.deepcopy(whole)):
        memory.add(rows, logits)
        kept = memory.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in again.state_dict().items())
    with pytest.raises(p4r.InputError, match="what was remembered has shape"):
        LabelMemory([0, 1]).load_state_dict(whole.state_dict())
