import pytest
import torch

from prune4rel.gpu.layers import mean_over_image


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (1, 5, 3, 7), (4, 2, 1, 1)])
def test_mean_and_gradient_are_pytorchs(order, kind, shape):
    torch.manual_seed(0)
    x = torch.randn(shape).to(kind).contiguous(memory_format=order)
    weights = torch.randn(shape[:2])
    found, wanted = x.clone(memory_format=order).requires_grad_(), x.clone(memory_format=order).requires_grad_()
    mine, other = mean_over_image(found, torch.float32), wanted.mean((2, 3), dtype=torch.float32)
    assert torch.equal(mine, other)
    (mine * weights).sum().backward()
    (other * weights).sum().backward()
    torch.testing.assert_close(found.grad, wanted.grad)
    assert found.grad.is_contiguous(memory_format=order)


def test_gradients_are_those_of_finite_differences():
    x = torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mean_over_image(x, torch.float64), x)
