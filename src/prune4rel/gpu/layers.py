"""Half-precision copies of a network's convolutions, made all at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from prune4rel.gpu.streams import SideStream, current
from prune4rel.machine import has_triton


class Halves:
    """Lends bfloat16 copies of their weights to convolutions, and collects the gradients of these.

    In mixed precision, weights are rounded for every forward pass, and gradients widened in every backward pass.
    Autocast does so layer by layer; here it is one operation for all layers each time, with the same result. Whoever
    changes weights has to have them rounded again.

    Parameters
    ----------
    network
        Whose convolutions to look after; other layers are autocast's.

    Examples
    --------
    >>> layer = nn.Conv2d(1, 1, 1, bias=False)
    >>> halves = Halves(layer)
    >>> with halves.swapped():
    ...     y = layer(torch.ones(1, 1, 1, 1, dtype=torch.bfloat16))
    >>> y.sum().backward()
    >>> halves.collect()
    >>> layer.weight.grad.flatten(), layer.weight.dtype
    (tensor([1.]), torch.float32)
    """

    def __init__(self, network: nn.Module) -> None:
        layers = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
        self._layers = [layer for layer in layers if layer.weight.dtype == torch.float32]
        self._whole: list[nn.Parameter] = [layer.weight for layer in self._layers]  # type: ignore[misc]
        self._half: list[nn.Parameter] = [
            nn.Parameter(weight.detach().bfloat16(), requires_grad=weight.requires_grad) for weight in self._whole
        ]

    def pairs(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Return the weights that are trained, each with its rounded copy."""
        pairs = zip(self._whole, self._half, strict=True)
        return [(whole, half) for whole, half in pairs if whole.requires_grad]

    @torch.no_grad()
    def round(self) -> None:
        """Round the weights as they are now."""
        _copy_all(self._half, self._whole)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Let the network have the rounded weights for a while."""
        for half in self._half:
            half.grad = None
        self._give(self._half)
        try:
            yield
        finally:
            self._give(self._whole)

    @torch.no_grad()
    def collect(self) -> None:
        """Give the weights the gradients that their rounded copies got."""
        got = [(whole, torch.empty_like(whole), half.grad) for whole, half in self.pairs() if half.grad is not None]
        _copy_all([wide for _, wide, _ in got], [gradient for _, _, gradient in got])
        for whole, wide, _ in got:
            whole.grad = wide

    def _give(self, weights: list[nn.Parameter]) -> None:
        for layer, weight in zip(self._layers, weights, strict=True):
            layer.weight = weight


def _copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    if targets:
        torch._foreach_copy_(list(targets), list(sources))


def kind_of(x: Tensor) -> torch.dtype:
    """In which precision a layer computes x.

    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     kind_of(torch.zeros(1))
    torch.bfloat16
    """
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


class Convolution(nn.Conv2d):
    """A convolution as any other; where work `side` is current, the gradient of its weights is found there.

    The backward pass needs the gradient of the input to go on, that of the weights only at its end.

    Examples
    --------
    >>> Convolution(3, 16, 3, padding=1)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve images (B, C, H, W)."""
        side = None if torch.compiler.is_compiling() else current()
        if side is None or not self._can_be_split(x):
            return super().forward(x)
        side.uses[id(self.weight)] += 1
        rest = (self.stride, self.padding, self.dilation, self.groups)
        y: Tensor = _Convolution.apply(x, self.weight, rest, side)  # type: ignore[no-untyped-call]
        return y

    def _can_be_split(self, x: Tensor) -> bool:
        """Whether what our backward pass returns is the gradient, and nobody reads it before the pass has ended."""
        weight = self.weight
        return (
            torch.is_grad_enabled()
            and weight.requires_grad
            and weight.is_leaf
            and weight.grad is None
            and x.dtype == weight.dtype == kind_of(x)
            and self.bias is None
            and self.padding_mode == "zeros"
            and not isinstance(self.padding, str)
        )


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, rest: tuple[Any, ...], side: SideStream) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.rest, ctx.side, ctx.name = rest, side, id(weight)
        return functional.conv2d(x, weight, None, *rest)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        x, weight = ctx.saved_tensors
        side: SideStream = ctx.side
        stride, padding, dilation, groups = ctx.rest

        def gradient(*, of_weight: bool) -> Tensor:
            wanted = [not of_weight, of_weight, False]
            rest = (stride, padding, dilation, False, [0, 0], groups)  # neither transposed nor with extra rows
            found = torch.ops.aten.convolution_backward(dy, x, weight, None, *rest, wanted)
            one: Tensor = found[1 if of_weight else 0]
            return one

        side.make_room()
        dx = gradient(of_weight=False) if ctx.needs_input_grad[0] else None
        dweight = side.begin(lambda: gradient(of_weight=True), x, dy)
        if side.uses[ctx.name] > 1 or not _lie_alike(dweight, weight):
            side.join()  # for it is added to another, or copied, at once
        return dx, dweight, None, None


def _lie_alike(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of the same shape lie in memory in the same order."""
    sides = zip(a.shape, a.stride(), b.stride(), strict=True)
    return all(one == other for size, one, other in sides if size > 1)


MOST_CHANNELS = 7
"""With more of them, a library does as well."""


class FirstConvolution(nn.Conv2d):
    """A convolution as any other, that is as fast as it can be on the three channels of an image.

    Tensor cores take channels by the eight: with fewer, libraries fill images up or do without. In half precision on a
    GPU, a 3x3 convolution padded by one is done by a kernel of our own.

    Examples
    --------
    >>> FirstConvolution(3, 16, 3, padding=1)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 16, 8, 8])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve images (B, C, H, W)."""
        kind = kind_of(x)
        if not (kind.itemsize == 2 and self._fits(x)):
            return super().forward(x)
        images, weight = (one.to(kind, memory_format=torch.channels_last) for one in (x, self.weight))
        y: Tensor = _FirstConvolved.apply(images, weight)  # type: ignore[no-untyped-call]
        return y

    def _fits(self, x: Tensor) -> bool:
        """Whether our kernel does what is asked for: images on a GPU, three by three, padded by one."""
        return (
            x.is_cuda
            and not x.requires_grad
            and self.bias is None
            and self.in_channels <= MOST_CHANNELS
            and (self.kernel_size, self.stride, self.padding, self.dilation) == ((3, 3), (1, 1), (1, 1), (1, 1))
            and (self.groups, self.padding_mode) == (1, "zeros")
            and not torch.compiler.is_compiling()
            and has_triton()
        )


class _FirstConvolved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _kernels().convolve(x, weight)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[None, Tensor]:
        x, weight = ctx.saved_tensors
        return None, _kernels().gradient_of_weight(x, weight, dy.contiguous(memory_format=torch.channels_last))


class NormReLU(nn.BatchNorm2d):
    """``relu(batch_norm(x))``, with the weights and buffers of `nn.BatchNorm2d`.

    In training on a GPU it is one operation that reads and writes images as seldom as it can, where PyTorch's two read
    and write them twice as often; half of the time of a small residual network goes there.

    Examples
    --------
    >>> layer = NormReLU(3)
    >>> x = torch.randn(4, 3, 2, 2)
    >>> torch.equal(layer(x), nn.BatchNorm2d(3)(x).relu())
    True
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        # by these names layers of this kind are known, here and in timm
        self.drop, self.act = nn.Identity(), nn.ReLU()
        self._arrived: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise and activate x (B, C, H, W)."""
        if not self._can_fuse(x):
            return torch.relu(super().forward(x))
        y: Tensor = self._fused(x, None)[0]
        return y

    def _can_fuse(self, *images: Tensor) -> bool:
        return all(map(_fits, images)) and (self.training or not torch.is_grad_enabled())

    def _fused(self, x: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
        kernels = _kernels()
        statistics = kernels.Statistics(
            self.weight, self.bias, self.running_mean, self.running_var, self.num_batches_tracked
        )
        if not self.training:
            y: Tensor = kernels.norm_relu_remembered(x, also, statistics, self.eps)
            return y, y
        if self._arrived is None or self._arrived.device != x.device:
            self._arrived = kernels.counters(self.num_features, x.device)
        two: tuple[Tensor, Tensor] = _NormReLU.apply(  # type: ignore[no-untyped-call]
            x, also, *statistics, self._arrived, self.eps, self.momentum
        )
        return two


def add_norm_relu(layer: nn.Module, x: Tensor, also: Tensor | None) -> tuple[Tensor, Tensor]:
    """Apply a `NormReLU`, or what stands for one, to x + also, and return the result twice, for two uses.

    It is the same as ``layer(x + also)``, but spares a GPU from writing and reading sums of images and of their
    gradients.

    Parameters
    ----------
    layer
        What to apply.
    x, also
        Images (B, C, H, W); None for no second summand.

    Examples
    --------
    >>> layer, x = NormReLU(3), torch.randn(4, 3, 2, 2)
    >>> first, second = add_norm_relu(layer, x, x)
    >>> torch.equal(first, second), torch.equal(first, layer(2 * x))
    (True, True)
    """
    images = [x] if also is None else [x, also]
    if isinstance(layer, NormReLU) and layer._can_fuse(*images):  # noqa: SLF001 - of the same module
        return layer._fused(x, also)  # noqa: SLF001
    y: Tensor = layer(sum(images[1:], start=x))
    return y, y


def _fits(x: Tensor) -> bool:
    """Whether our kernels take it: images on a GPU, channels last, more than one value a channel."""
    return (
        x.is_cuda
        and x.is_contiguous(memory_format=torch.channels_last)
        and x.numel() > x.shape[1]
        and not torch.compiler.is_compiling()  # whoever compiles fuses by itself
        and has_triton()
    )


def _kernels() -> Any:
    """Import what needs Triton, which comes with PyTorch for GPUs."""
    from prune4rel.gpu import layer_kernels  # noqa: PLC0415

    return layer_kernels


class _NormReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        also: Tensor | None,
        weight: Tensor,
        bias: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        batches: Tensor,
        arrived: Tensor,
        eps: float,
        momentum: float,
    ) -> tuple[Tensor, Tensor]:
        kernels = _kernels()
        statistics = kernels.Statistics(weight, bias, running_mean, running_var, batches)
        y, whole, facts = kernels.norm_relu(x, also, statistics, arrived, eps, momentum)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(whole, facts)
        ctx.arrived, ctx.two = arrived, also is not None
        return y, y.data  # the same memory, but a gradient of its own

    @staticmethod
    def backward(ctx: Any, *dys: Tensor | None) -> tuple[Tensor | None, ...]:
        whole, facts = ctx.saved_tensors
        pulls = [dy.contiguous(memory_format=torch.channels_last) for dy in dys if dy is not None]
        if not pulls:
            return (None,) * 10
        second = pulls[1] if len(pulls) == 2 else None
        dx, dweight, dbias = _kernels().norm_relu_gradients(whole, pulls[0], second, facts, ctx.arrived)
        return dx, dx if ctx.two else None, dweight, dbias, None, None, None, None, None, None


TILE, MOST_COLUMNS, WARPS = 4096, 64, 4
"""Numbers a program changes together, in how many channels at most, by how many warps."""

TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS, WARPS_OF_SUMS = 8192, 32, 4
"""Likewise for a program that adds up: it keeps as many sums in its registers. Found by trying, on an H200."""

MOST_PROGRAMS = 256
"""Programs that add up; about two for each multiprocessor of a large GPU."""


class Cut(NamedTuple):
    """How a matrix is cut up: rows and columns of a tile, tiles from top to bottom and from left to right."""

    rows: int
    columns: int
    down: int
    across: int

    @property
    def parts(self) -> int:
        """How many programs share the places of a channel where they are added up."""
        return min(self.down, max(1, MOST_PROGRAMS // self.across))

    @property
    def sizes(self) -> dict[str, int]:
        """What kernels that change numbers have to know beforehand."""
        return {"ROWS": self.rows, "COLUMNS": self.columns, "num_warps": WARPS}

    @property
    def sizes_of_sums(self) -> dict[str, int]:
        """What kernels that add up have to know beforehand."""
        return {**self.sizes, "PARTS": _power_of_two(self.parts), "num_warps": WARPS_OF_SUMS}


def cut(places: int, channels: int, tile: int, most_columns: int) -> Cut:
    """Cut a matrix of places by channels up.

    >>> cut(262144, 64, 8192, 32), cut(262144, 64, 8192, 32).parts
    (Cut(rows=256, columns=32, down=1024, across=2), 128)
    """
    columns = min(most_columns, _power_of_two(channels))
    rows = min(tile // columns, _power_of_two(places))
    return Cut(rows, columns, _parts(places, rows), _parts(channels, columns))


def cut_for_sums(places: int, channels: int) -> Cut:
    """Cut a matrix up that is added up."""
    return cut(places, channels, TILE_OF_SUMS, MOST_COLUMNS_OF_SUMS)


def cut_for_changes(places: int, channels: int) -> Cut:
    """Cut a matrix up that is changed number by number."""
    return cut(places, channels, TILE, MOST_COLUMNS)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _parts(whole: int, size: int) -> int:
    return -(-whole // size)


def mean_over_image(x: Tensor, kind: torch.dtype) -> Tensor:
    """Return the mean over all places of images (B, C, H, W), added up in a precision of choice, (B, C).

    Its gradient is written once, in the order in which x lies in memory; PyTorch's own is divided, rounded and put in
    order in steps, each of which writes all of it.

    Examples
    --------
    >>> mean_over_image(torch.ones(2, 3, 4, 4, dtype=torch.bfloat16), torch.float32).shape
    torch.Size([2, 3])
    """
    if torch.compiler.is_compiling():  # whoever compiles fuses by itself
        return x.mean((2, 3), dtype=kind)
    mean: Tensor = _Mean.apply(x, kind)  # type: ignore[no-untyped-call]
    return mean


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: torch.dtype) -> Tensor:
        ctx.shape, ctx.kind = x.shape, x.dtype
        last = x.is_contiguous(memory_format=torch.channels_last)
        ctx.order = torch.channels_last if last else torch.contiguous_format
        return x.mean((2, 3), dtype=kind)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        places = ctx.shape[2] * ctx.shape[3]
        share = (dy / places).to(ctx.kind)[:, :, None, None]
        return share.expand(ctx.shape).contiguous(memory_format=ctx.order), None
