import pytest
import torch

from prune4rel.neighbours.precision import full_precision


def settings():
    reduced = torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
    return torch.get_float32_matmul_precision(), reduced


@pytest.mark.parametrize("before", ["highest", "high", "medium"])
def test_products_are_exact_inside_and_as_before_outside(before):
    found = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        outside = settings()
        with full_precision():
            assert settings() == ("highest", False)
        assert settings() == outside
        with pytest.raises(RuntimeError, match="no"), full_precision():
            raise RuntimeError("no")
        assert settings() == outside
    finally:
        torch.set_float32_matmul_precision(found)
