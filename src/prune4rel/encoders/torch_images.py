"""What encoders of images that are PyTorch modules share: weights from files, precision, the way to a GPU and back."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from threading import Barrier
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from prune4rel.encoders.encoder import Encoder, Vectors, digest_of
from prune4rel.encoders.sight import Sight
from prune4rel.machine import resolve_device

ON_A_CPU, ON_A_GPU = 4, 256
"""Images at a time. What layers say of more on a CPU is fetched from the system anew each time, and paged in."""

LANES_OF_A_GPU = 2
"""While one batch is fetched the next is on its way."""


class TorchImages(Encoder):
    """A module that turns normalised images (B, 3, S, S) into vectors (B, d).

    On a GPU it computes in bfloat16, on a CPU in float32.
    """

    kind = "images"

    def __init__(self, name: str, module: nn.Module, sight: Sight, device: str) -> None:
        self.name, self.sight = name, sight
        self.device = resolve_device(device)
        on_a_gpu = self.device != "cpu"
        self.batch = ON_A_GPU if on_a_gpu else ON_A_CPU
        self.precision = "bfloat16" if on_a_gpu else "float32"
        self.digest = digest_of(as_arrays(module.state_dict()))
        self._type = torch.bfloat16 if on_a_gpu else torch.float32
        body: Any = module.to(self.device, self._type)
        self._module = body.to(memory_format=torch.channels_last)  # as images come
        self._module.eval().requires_grad_(requires_grad=False)
        # (x / 255 - mean) / std as one product and one sum
        mean, std = np.array(sight.mean), np.array(sight.std)
        self._scale = torch.tensor(1 / (255 * std), dtype=torch.float32, device=self.device)[:, None, None]
        self._shift = torch.tensor(-mean / std, dtype=torch.float32, device=self.device)[:, None, None]

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        size = self.sight.size if self.sight is not None else 1
        return int(self.encode([np.zeros((size, size, 3), dtype=np.uint8)]).shape[1])

    @torch.inference_mode()
    def encode(self, batch: Sequence[NDArray[np.uint8]] | NDArray[np.uint8] | Tensor) -> Vectors:
        """Turn b images (size, size, 3) uint8 into (b, d) float32."""
        images = batch if isinstance(batch, Tensor) else torch.from_numpy(np.asarray(batch))
        inputs = images.to(self.device, non_blocking=True).permute(0, 3, 1, 2)
        inputs = (inputs * self._scale + self._shift).to(self._type)
        found: Tensor = self._module(inputs)
        return found.flatten(1).float().cpu().numpy()

    @contextmanager
    def lanes(self) -> Iterator[ThreadPoolExecutor]:
        """Open threads that call `encode` side by side; on a CPU each computes on one core."""
        if self.device != "cpu":
            with ThreadPoolExecutor(LANES_OF_A_GPU) as pool:
                yield pool
            return
        with super().lanes() as pool, one_core_each(pool):
            yield pool


@contextmanager
def one_core_each(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Let PyTorch compute on one core in every thread that is started meanwhile; afterwards all is as it was."""
    before = torch.get_num_threads()
    ready = Barrier(pool._max_workers)  # noqa: SLF001 - the executor does not tell

    def be_limited() -> None:
        torch.set_num_threads(1)  # every thread has its own setting
        ready.wait()

    try:
        for setting in [pool.submit(be_limited) for _ in range(ready.parties)]:
            setting.result()
        yield
    finally:
        torch.set_num_threads(before)


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return tensors as arrays, so that they can be fingerprinted; those NumPy has no type for by their bytes."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return {
        name: tensor.view(torch.int16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()
        for name, tensor in plain.items()
    }
