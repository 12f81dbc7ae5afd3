import copy

import pytest
import torch

from prune4rel.networks.first_convolution import FirstConvolution


def layers(channels, **options):
    torch.manual_seed(0)
    layer = FirstConvolution(channels, 5, 3, **options)
    return layer, copy.deepcopy(layer)


@pytest.mark.parametrize("channels", [1, 3, 8, 9])
@pytest.mark.parametrize("options", [{"padding": 1, "bias": False}, {"stride": 2}, {"dilation": 2}])
def test_channels_of_zeros_change_nothing(channels, options):
    plain, filled = layers(channels, **options)
    x = torch.randn(4, channels, 9, 9)
    wanted, found = plain(x), filled.filled_up(x)
    torch.testing.assert_close(found, wanted)
    wanted.square().sum().backward()
    found.square().sum().backward()
    torch.testing.assert_close(filled.weight.grad, plain.weight.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("channels_last", [False, True])
def test_on_a_gpu_it_is_the_convolution_it_stands_for(channels_last):
    layer, exact = (one.cuda() for one in layers(3, padding=1, bias=False))
    x = torch.randn(64, 3, 32, 32, device="cuda")
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
        layer = layer.to(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.bfloat16):
        found = layer(x)
    wanted = exact.double()(x.double())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2)
    found.float().sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(layer.weight.grad.double(), exact.weight.grad, rtol=2e-2, atol=20)
