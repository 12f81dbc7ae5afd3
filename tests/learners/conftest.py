import pytest
import torch
from tests.learners.loop import train_on_digits


@pytest.fixture(scope="session")
def memorised():
    """Share of wrong labels of noisy digits that plain cross-entropy sees through."""
    loop, true = train_on_digits("cross-entropy")
    return loop.correction(true)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Networks here are so small that threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
