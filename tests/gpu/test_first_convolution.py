import pytest
import torch
from torch import nn

from prune4rel.gpu.layers import FirstConvolution

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LAST = torch.channels_last


def two(channels, out=5, **options):
    torch.manual_seed(0)
    options = {"kernel_size": 3, "padding": 1, "bias": False, **options}
    layer, plain = FirstConvolution(channels, out, **options), nn.Conv2d(channels, out, **options)
    plain.load_state_dict(layer.state_dict())
    return layer, plain


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"bias": True}])
def test_on_a_cpu_it_is_any_convolution(options):
    layer, plain = two(3, **options)
    x = torch.randn(4, 3, 9, 9)
    assert torch.equal(layer(x), plain(x))


@on_a_gpu
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("batch", "channels", "side", "out"),
    [(64, 3, 32, 64), (256, 3, 32, 64), (3, 3, 32, 64), (5, 1, 28, 16), (2, 7, 33, 70), (1, 3, 1, 8), (4, 4, 5, 3)],
)
def test_on_a_gpu_it_is_the_convolution_it_stands_for(batch, channels, side, out, channels_last):
    layer, exact = two(channels, out)
    layer, exact = layer.cuda(), exact.cuda().double()
    x = torch.randn(batch, channels, side, side, device="cuda")
    if channels_last:
        x, layer = x.to(memory_format=LAST), layer.to(memory_format=LAST)
    pull = torch.randn(batch, out, side, side, device="cuda").bfloat16()
    with torch.autocast("cuda", torch.bfloat16):
        found = layer(x)
    found.backward(pull)
    rounded = x.bfloat16().double()
    exact.weight.data.copy_(layer.weight.bfloat16())
    wanted = exact(rounded)
    wanted.backward(pull.double())
    assert found.dtype == torch.bfloat16
    assert found.is_contiguous(memory_format=LAST)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-2, atol=1e-3)
    scale = float(exact.weight.grad.abs().max())
    torch.testing.assert_close(layer.weight.grad.double(), exact.weight.grad, rtol=1e-2, atol=1e-2 * scale)


@on_a_gpu
@pytest.mark.parametrize(
    "options", [{"stride": 2}, {"padding": 0}, {"bias": True}, {"kernel_size": 5}, {"dilation": 2}]
)
def test_on_a_gpu_others_are_left_to_libraries(options):
    layer, plain = (one.cuda().bfloat16() for one in two(3, **options))
    x = torch.randn(4, 3, 9, 9, device="cuda").bfloat16()
    torch.testing.assert_close(layer(x), plain(x))


@on_a_gpu
def test_on_a_gpu_images_may_want_a_gradient():
    layer, plain = (one.cuda().bfloat16() for one in two(3))
    x = torch.randn(4, 3, 9, 9, device="cuda").bfloat16()
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    layer(mine).sum().backward()
    plain(other).sum().backward()
    torch.testing.assert_close(mine.grad, other.grad)


@on_a_gpu
def test_on_a_gpu_it_gives_the_same_every_time():
    layer, _ = two(3, 64)
    layer = layer.cuda().bfloat16()
    x = torch.randn(256, 3, 32, 32, device="cuda").bfloat16()
    found = []
    for _ in range(3):
        layer.weight.grad = None
        y = layer(x)
        y.float().square().sum().backward()
        found.append((y, layer.weight.grad))
    assert all(torch.equal(y, found[0][0]) and torch.equal(g, found[0][1]) for y, g in found)
