"""Batch normalisation and ReLU in one, beside PyTorch's two."""

import pytest
import torch
from torch import nn

from prune4rel.gpu.layers import MOST_PROGRAMS, NormReLU, add_norm_relu, cut_for_changes, cut_for_sums

SHAPES = [(4, 64, 8, 8), (2, 3, 5, 7), (3, 130, 4, 4), (64, 8, 32, 32), (256, 64, 32, 32), (5, 512, 4, 4), (2, 1, 1, 1)]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def pair(channels, device="cpu"):
    ours, plain = NormReLU(channels), nn.BatchNorm2d(channels)
    nn.init.normal_(ours.weight)
    nn.init.normal_(ours.bias)
    plain.load_state_dict(ours.state_dict())
    return ours.to(device), plain.to(device)


def images(shape, device, dtype=torch.float32):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 2 + 3
    return x.to(device, dtype).contiguous(memory_format=torch.channels_last)


def run(layer, x, dy):
    x = x.detach().requires_grad_()
    y = layer(x)
    y.backward(dy)
    return y.detach(), x.grad, layer.weight.grad, layer.bias.grad


@pytest.mark.parametrize("training", [True, False])
def test_it_is_a_batch_norm_and_a_relu(training):
    ours, plain = pair(3)
    x = images((4, 3, 5, 5), "cpu")
    assert torch.equal(ours.train(training)(x), plain.train(training)(x).relu())
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert all(map(torch.equal, ours.state_dict().values(), plain.state_dict().values()))


@pytest.mark.parametrize("places", [1, 7, 4096, 262_144])
@pytest.mark.parametrize("channels", [1, 3, 64, 130, 2048])
def test_every_number_is_in_one_tile_and_every_sum_has_few_parts(places, channels):
    for found in (cut_for_sums(places, channels), cut_for_changes(places, channels)):
        assert (found.down - 1) * found.rows < places <= found.down * found.rows
        assert (found.across - 1) * found.columns < channels <= found.across * found.columns
        assert 1 <= found.parts <= min(found.down, MOST_PROGRAMS)
        assert found.parts <= found.sizes_of_sums["PARTS"] < 2 * found.parts
        assert all(number & (number - 1) == 0 for number in (found.rows, found.columns))


def test_one_value_a_channel_is_refused_as_by_pytorch():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        NormReLU(3)(torch.zeros(1, 3, 1, 1))


@needs_gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernels_do_what_pytorch_does_in_double_precision(shape, dtype):
    ours, plain = pair(shape[1], "cuda")
    plain = plain.double()
    x = images(shape, "cuda", dtype)
    dy = torch.randn(shape, device="cuda").to(dtype)
    found = run(ours, x, dy)
    wanted = run(PlainThenReLU(plain), x.double(), dy.double())
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    apart = [(a.double() - b).abs() for a, b in zip(found[:2], wanted[:2], strict=True)]
    # a value that rounds to the other side of zero sends its gradient elsewhere: rare, but allowed
    for gap, value in zip(apart, wanted, strict=False):
        assert (gap <= tolerance["atol"] + tolerance["rtol"] * value.abs()).double().mean() > 0.9999
    scale = shape[0] * shape[2] * shape[3]
    for a, b in zip(found[2:], wanted[2:], strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-5 * scale)
    for name, buffer in ours.named_buffers():
        torch.testing.assert_close(buffer.double(), plain.get_buffer(name).double(), rtol=1e-4, atol=1e-5)


class PlainThenReLU:
    """A plain layer followed by ReLU, whose weights can be asked for."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, x):
        return self.layer(x).relu()

    @property
    def weight(self):
        return self.layer.weight

    @property
    def bias(self):
        return self.layer.bias


@needs_gpu
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_remembered_is_applied_as_by_pytorch(shape, dtype):
    ours, plain = pair(shape[1], "cuda")
    for buffer in (ours.running_mean, ours.running_var):
        buffer.uniform_(0.5, 3.0)
    plain.load_state_dict(ours.state_dict())
    x = images(shape, "cuda", dtype)
    with torch.no_grad():
        found, wanted = ours.eval()(x), plain.double().eval()(x.double()).relu()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)
    x.requires_grad_()
    ours(x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
@pytest.mark.parametrize("uses", [1, 2])
@pytest.mark.parametrize("summands", [1, 2])
def test_ways_that_meet_and_part_are_a_sum_and_two_uses(device, summands, uses):
    shape = (32, 64, 16, 16)
    ours, plain = pair(64, device)
    given = [(images(shape, device) * (k + 1)).requires_grad_() for k in range(summands)]
    copies = [x.detach().clone().requires_grad_() for x in given]
    dys = [torch.randn(shape, generator=torch.Generator().manual_seed(k)).to(device) for k in range(uses)]
    found = add_norm_relu(ours, given[0], given[1] if summands == 2 else None)[:uses]
    torch.autograd.backward(found, dys)
    wanted = plain(sum(copies)).relu()
    wanted.backward(sum(dys))
    for y in found:
        torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-4)
    for x, copy in zip(given, copies, strict=True):
        torch.testing.assert_close(x.grad, copy.grad, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad, rtol=1e-3, atol=0.1)
    torch.testing.assert_close(ours.bias.grad, plain.bias.grad, rtol=1e-3, atol=0.1)
    torch.testing.assert_close(ours.running_var, plain.running_var, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        first, second = add_norm_relu(ours.eval(), given[0], given[1] if summands == 2 else None)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, plain.eval()(sum(copies)).relu(), rtol=1e-4, atol=1e-4)


@needs_gpu
def test_what_is_used_by_nobody_gets_no_gradient():
    ours, _ = pair(4, "cuda")
    x = images((8, 4, 6, 6), "cuda").requires_grad_()
    first, second = add_norm_relu(ours, x, None)
    second.sum().backward()
    assert x.grad is not None
    assert torch.equal(first, second)


@needs_gpu
def test_the_same_bits_every_time():
    x, dy = images((256, 64, 32, 32), "cuda", torch.bfloat16), torch.randn(256, 64, 32, 32, device="cuda").bfloat16()
    ours, _ = pair(64, "cuda")
    first = run(ours, x, dy)
    again = NormReLU(64).cuda()
    again.load_state_dict({**ours.state_dict(), "running_mean": torch.zeros(64), "running_var": torch.ones(64)})
    assert all(map(torch.equal, first, run(again, x, dy)))


@needs_gpu
def test_a_large_mean_does_not_spoil_the_spread():
    ours, plain = pair(8, "cuda")
    x = images((64, 8, 16, 16), "cuda") + 1000
    torch.testing.assert_close(ours(x).double(), plain.double()(x.double()).relu(), rtol=1e-2, atol=1e-2)


@needs_gpu
@pytest.mark.parametrize("lay", [torch.contiguous_format, torch.channels_last])
def test_other_layouts_take_the_plain_way(lay):
    ours, plain = pair(4, "cuda")
    x = images((8, 4, 6, 6), "cuda").contiguous(memory_format=lay)
    torch.testing.assert_close(ours(x), plain(x).relu())
