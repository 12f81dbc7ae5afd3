import pytest
import torch
from tests.training.small import features, trainer_of

from prune4rel import InputError
from prune4rel.training import train
from prune4rel.training.step import Stepper
from prune4rel.training.trainer import explaining_memory, is_out_of_memory, largest_batch_that_fits

OUT_OF_MEMORY = torch.OutOfMemoryError("CUDA out of memory")


@pytest.fixture
def room_for(monkeypatch):
    """Let steps with more than so many examples run out of memory."""

    def limit(most, error=OUT_OF_MEMORY):
        real = Stepper._run

        def run(self, one, streams, drawn):
            if len(streams[0].rows) > most:
                raise error
            real(self, one, streams, drawn)

        monkeypatch.setattr(Stepper, "_run", run)

    return limit


@pytest.mark.parametrize("most", [1, 2, 3, 5, 11, 22, 39])
def test_the_largest_batch_that_fits_is_found(room_for, most):
    room_for(most)
    trainer = trainer_of(features(), batch=40)
    assert largest_batch_that_fits(trainer) == (most if most >= 2 else None)


def test_a_training_says_so_in_one_line(room_for, tmp_path):
    room_for(11)
    with pytest.raises(
        InputError, match=r"a batch of 40 does not fit into the memory of cpu; .* about 11: pass batch=11"
    ):
        train(features(), folder=tmp_path, network="mlp", batch=40, epochs=1, device="cpu")


def test_where_nothing_fits_it_advises_another_network(room_for, tmp_path):
    room_for(0)
    with pytest.raises(InputError, match="not even 2 examples fit; choose a smaller network"):
        train(features(), folder=tmp_path, network="mlp", batch=40, epochs=1, device="cpu")


def test_the_failed_step_is_let_go_of_before_smaller_ones_are_tried(room_for):
    room_for(11)
    alive = []

    class Big:
        def __del__(self):
            alive.remove(self.number)

    def work():
        held = Big()
        held.number = 1
        alive.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory")

    def watching(*_):
        assert not alive
        return 3

    trainer = trainer_of(features(), batch=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prune4rel.training.trainer.largest_batch_that_fits", watching)
        with pytest.raises(InputError, match="about 3"):
            explaining_memory(trainer, work)


def test_other_errors_are_none_of_its_business(room_for):
    trainer = trainer_of(features(), batch=40)
    with pytest.raises(RuntimeError, match="something else"):
        explaining_memory(trainer, lambda: (_ for _ in ()).throw(RuntimeError("something else")))
    room_for(11, RuntimeError("something else"))
    with pytest.raises(RuntimeError, match="something else"):
        largest_batch_that_fits(trainer)


def test_how_it_is_told():
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
