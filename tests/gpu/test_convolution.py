import copy

import pytest
import torch
from torch import nn

from prune4rel.gpu.layers import Convolution
from prune4rel.gpu.streams import SideStream

CPU = torch.device("cpu")


def two(**options):
    torch.manual_seed(0)
    layer = Convolution(4, 6, **{"kernel_size": 3, "bias": False, **options})
    plain = nn.Conv2d(4, 6, **{"kernel_size": 3, "bias": False, **options})
    plain.load_state_dict(layer.state_dict())
    return layer, plain


def images(**options):
    return torch.randn(5, 4, 9, 7, generator=torch.Generator().manual_seed(1), requires_grad=True, **options)


class Watched(SideStream):
    """Notes what is done side, and which of it is waited for."""

    def __init__(self):
        super().__init__(CPU)
        self.begun = self.waited = 0

    def begin(self, work, *needed):
        self.begun += 1
        return super().begin(work, *needed)

    def join(self):
        self.waited = self.begun
        super().join()


@pytest.mark.parametrize(
    "options",
    [{}, {"padding": 1}, {"stride": 2}, {"stride": (1, 2), "padding": (0, 1)}, {"dilation": 2}, {"groups": 2},
     {"kernel_size": 1, "stride": 2}],
)  # fmt: skip
@pytest.mark.parametrize("channels_last", [False, True])
def test_gradients_are_those_of_any_convolution(options, channels_last):
    layer, plain = two(**options)
    x, same = images(), images()
    if channels_last:
        layer = layer.to(memory_format=torch.channels_last)
    side = Watched()
    with side.active():
        y = layer(x)
        y.square().sum().backward()
    wanted = plain(same)
    wanted.square().sum().backward()
    assert side.begun == 1
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close(x.grad, same.grad)
    torch.testing.assert_close(layer.weight.grad, plain.weight.grad)


def test_images_need_no_gradient():
    layer, plain = two()
    with Watched().active():
        layer(images().detach()).sum().backward()
    plain(images().detach()).sum().backward()
    torch.testing.assert_close(layer.weight.grad, plain.weight.grad)


def test_a_weight_used_twice_is_waited_for():
    layer, plain = two(padding=1)
    side = Watched()
    with side.active():
        loss = layer(images()).sum() + layer(2 * images()).square().sum()
        loss.backward()
        assert side.begun == side.waited == 2
    (plain(images()).sum() + plain(2 * images()).square().sum()).backward()
    torch.testing.assert_close(layer.weight.grad, plain.weight.grad)


def test_a_weight_used_once_is_waited_for_at_the_end():
    layer, _ = two()
    side = Watched()
    with side.active():
        layer(images()).sum().backward()
        assert (side.begun, side.waited) == (1, 0)
    assert side.waited == 1


def unusual(name):
    layer, _ = two(bias=name == "with a bias")
    if name == "derived":
        layer.weight.requires_grad_(False)
        weight = nn.Parameter(layer.weight.clone())
        del layer.weight
        layer.weight = weight * 1
    if name == "frozen":
        layer.weight.requires_grad_(False)
    if name == "with a gradient":
        layer.weight.grad = torch.ones_like(layer.weight)
    return layer


@pytest.mark.parametrize("name", ["with a bias", "derived", "frozen", "with a gradient"])
def test_others_do_as_any_convolution_does(name):
    layer = unusual(name)
    side = Watched()
    with side.active():
        layer(images()).sum().backward()
    assert side.begun == 0


@pytest.mark.parametrize("padding", ["same", 1])
def test_padding_by_name_or_mode_is_left_alone(padding):
    options = {"padding": padding} if padding == "same" else {"padding": 1, "padding_mode": "circular"}
    layer, plain = two(**options)
    side = Watched()
    with side.active():
        y = layer(images())
    torch.testing.assert_close(y, plain(images()))
    assert side.begun == 0


def test_nothing_is_kept_without_gradients():
    layer, _ = two()
    side = Watched()
    with side.active(), torch.no_grad():
        y = layer(images())
    assert y.grad_fn is None
    assert not side.uses


def test_autocast_casts_as_ever():
    layer, plain = two()
    half, _ = two()
    half.weight = nn.Parameter(half.weight.detach().bfloat16())
    side = Watched()
    with side.active(), torch.autocast("cpu", torch.bfloat16):
        cast = layer(images())
        given = half(images().bfloat16())
        given.float().sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        wanted = plain(images())
    assert cast.dtype == given.dtype == torch.bfloat16
    assert torch.equal(cast, wanted)
    assert torch.equal(given, wanted)
    assert side.begun == 1
    assert half.weight.grad.dtype == torch.bfloat16


def test_it_is_copied_like_any_layer():
    layer, plain = two()
    again = copy.deepcopy(layer)
    assert again.state_dict().keys() == plain.state_dict().keys()
    assert torch.equal(again(images()), plain(images()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("depth", [1, 12])
def test_on_a_gpu_gradients_are_the_same_to_the_last_bit(recorded, depth):
    """Large enough that the gradients of weights lie behind; what they need must not be overwritten meanwhile."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        torch.manual_seed(0)
        layers = [Convolution(64, 64, 3, padding=1, bias=False) for _ in range(depth)]
        kind = {"dtype": torch.bfloat16, "memory_format": torch.channels_last}
        network = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())]).cuda().to(**kind)
        x = torch.randn(64, 64, 32, 32, device="cuda").to(**kind).requires_grad_()
        wanted = gradients_of(network, x, None)
        side = SideStream(x.device)
        found = recorded_gradients(network, x, side) if recorded else gradients_of(network, x, side)
    finally:
        cudnn.benchmark, cudnn.deterministic = before
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
    assert all(gradient.any() for gradient in found)


def gradients_of(network, x, side):
    network.zero_grad(set_to_none=True)
    x.grad = None
    with SideStream(CPU).active() if side is None else side.active():
        network(x).square().mean().backward()
    return [x.grad, *(p.grad for p in network.parameters())]


def recorded_gradients(network, x, side):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            gradients_of(network, x, side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        found = gradients_of(network, x, side)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return found
