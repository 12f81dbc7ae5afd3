"""Several processes that train on a GPU. One GPU will do."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.training import ranks_at_work as ranked

from prune4rel.loading.schedule import Ranks
from prune4rel.training.distributed import DistributedRanks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TOLERANCE = {"rtol": 1e-3, "atol": 1e-3}
"""Of float32 numbers that other kernels added up in another order, over some epochs."""


@pytest.fixture(autouse=True)
def in_full_precision(monkeypatch):
    """Convolve as exactly as the processes do."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two processes on one GPU made of every case."""
    folder = tmp_path_factory.mktemp("two")
    codes, said = ranked.run_two(str(folder), module="ranks_on_a_gpu")
    assert codes == [0, 0], said
    return [
        (json.loads((folder / f"rank{rank}.json").read_text()), load_file(folder / f"rank{rank}.tensors"))
        for rank in range(2)
    ]


@pytest.mark.parametrize("name", ranked.CASES)
def test_two_processes_on_a_gpu_follow_one(name, two):
    curve, facts, state = ranked.follow(name, Ranks(), "cuda")
    for told, tensors in two:
        assert told[name]["facts"] == facts
        for numbers, expected in zip(told[name]["curve"], curve, strict=True):
            assert numbers == pytest.approx(expected, rel=1e-3, abs=1e-3)
        for key, values in state.items():
            torch.testing.assert_close(
                tensors[f"{name}/{key}"], values.cpu(), **TOLERANCE, msg=lambda text, key=key: f"{key}: {text}"
            )


def test_all_processes_on_a_gpu_are_in_the_same_state_to_the_last_bit(two):
    (first_told, first), (second_told, second) = two
    assert first_told == second_told
    assert all(torch.equal(values, second[key]) for key, values in first.items())


@pytest.fixture
def nccl(tmp_path):
    """A group of one process, as `join` makes it of several."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
    yield DistributedRanks(0, 1, torch.device("cuda", 0))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("name", ["sop+ with batch normalisation", "dividemix"])
def test_a_training_whose_numbers_travel_by_nccl_is_the_same(name, nccl):
    expected, _, state = ranked.follow(name, Ranks(), "cuda")
    trainer = ranked.trainer_of(name, nccl, "cuda")
    trainer.training.stepper.recorder = None  # as with several processes: steps that wait for others are not recorded
    with trainer.settings():
        curve = [trainer.training.run_epoch(lambda *_: None) for _ in range(trainer.plan.hyperparameters.epochs)]
    for numbers, wanted in zip(curve, expected, strict=True):
        assert numbers == pytest.approx(wanted, rel=1e-3, abs=1e-3)
    for key, values in trainer.training.state()[0].items():
        torch.testing.assert_close(values.cpu(), state[key].cpu(), **TOLERANCE)


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_tensors_of_either_kind_may_be_exchanged(where, nccl):
    rows = torch.arange(6.0, device=where).reshape(3, 2)
    assert torch.equal(nccl.gather(rows), rows)
    assert torch.equal(nccl.gather(rows > 2), rows > 2)
    share = torch.tensor(3.0, device=where, requires_grad=True)
    (nccl.once(nccl.sum(share) ** 2)).backward()
    assert share.grad == 6
    gradients = [rows.clone(), rows.double()]
    nccl.reduce_(gradients)
    assert torch.equal(gradients[1], rows.double())
    nccl.barrier()
    nccl.check_alike("the same", "thing")
