import pytest
import torch


@pytest.fixture(autouse=True)
def _one_torch_thread():
    """Products of a few rows are fastest on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
