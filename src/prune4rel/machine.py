"""What the machine has: memory, threads, accelerators."""

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from prune4rel.errors import InputError

if TYPE_CHECKING:
    import torch

THREADS = "PRUNE4REL_THREADS"
MULTIPLICATIONS = 2e10
"""About a second of two cores: for estimates before the work."""

MEMORY_SHARE = 0.6
"""Share of the memory that is free which one piece of work takes unless told."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def available_memory() -> int:
    """Bytes a new allocation could take without swapping, container limits respected."""
    free = _meminfo_available()
    if free is None:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 * 2**30
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        free = min(free, max(0, limit - used))
    return free


def _meminfo_available() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def send(tensor: "torch.Tensor", device: "torch.device") -> "torch.Tensor":
    """Return a tensor on a device, without waiting for it.

    From memory that is not pinned, a copy to a GPU would wait for all that the GPU still has to do.
    """
    if device.type == "cuda" and not tensor.is_cuda:
        tensor = tensor.contiguous().pin_memory()  # a value that stands for many cannot be pinned as it is
    return tensor.to(device, non_blocking=True)


@cache
def has_triton() -> bool:
    """Whether GPU kernels of our own can be made: Triton comes with PyTorch for GPUs."""
    return find_spec("triton") is not None


@cache
def multiplies_bfloat16() -> bool:
    """Whether the processor has units for products in bfloat16, as Linux tells, and PyTorch is there to use them."""
    try:
        known = find_spec("torch") is not None
        words = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return False
    return known and not {"amx_bf16", "avx512_bf16"}.isdisjoint(words)


def threads() -> int:
    """Return how many threads may run at once here (``PRUNE4REL_THREADS`` overrides)."""
    wanted = os.environ.get(THREADS, "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


@contextmanager
def sharing(processes: int) -> Iterator[None]:
    """Leave other processes of this machine their share of its threads, for a while.

    >>> with sharing(1000):
    ...     threads()
    1
    """
    before = os.environ.get(THREADS)
    os.environ[THREADS] = str(max(1, threads() // processes))
    try:
        yield
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def memory_budget(memory: str | float | None) -> int:
    """Bytes that a piece of work may take: what is asked for, else a share of what is free.

    >>> memory_budget("2KB")
    2048
    """
    if memory is None:
        return int(MEMORY_SHARE * available_memory())
    try:
        return parse_bytes(memory)
    except InputError as error:
        raise InputError(f"memory: {error}") from None


def parse_bytes(text: str | float) -> int:
    """Read a size such as ``"8GB"``, ``"512 MiB"`` or a plain number of bytes.

    >>> parse_bytes("8GB") == 8 * 2**30, parse_bytes("1.5 MiB"), parse_bytes(1000)
    (True, 1572864, 1000)
    """
    if isinstance(text, str):
        word = text.strip().upper().removesuffix("B").removesuffix("I").strip()
        unit = word[-1:] if word[-1:] in "KMGT" else ""
        number: float | str = word.removesuffix(unit)
    else:
        number, unit = text, ""
    try:
        size = float(number) * _UNITS[unit]
    except (ValueError, TypeError):
        size = math.nan
    if not 0 <= size < math.inf:
        raise InputError(f"cannot read {text!r} as a size in bytes; write it like 8GB or 512MB")
    return int(size)


def format_bytes(count: float) -> str:
    """Write a number of bytes for people.

    >>> format_bytes(3 * 2**30), format_bytes(512)
    ('3.0 GiB', '512 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        shown = f"{count:.0f}" if unit == "B" else f"{count:.1f}"
        if float(shown) < 1024:
            return f"{shown} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """Write a duration for people.

    >>> format_seconds(0.25), format_seconds(75), format_seconds(7300)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


WORTH_A_GPU = 1e11
"""Multiplications below which starting a GPU takes longer than doing them on the CPU."""


def resolve_device(device: "str | torch.device", work: float = math.inf) -> str:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"`` or a PyTorch device into the name of one that is there.

    ``"auto"`` stays on the CPU where `work`, in multiplications, is too little for a GPU.
    """
    device = str(device)
    if device == "cpu" or (device == "auto" and (work < WORTH_A_GPU or not _may_have_cuda())):
        return "cpu"
    if device != "auto" and not re.fullmatch(r"cuda(:\d+)?", device):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {device!r}")
    try:
        import torch  # noqa: PLC0415 - two seconds that a CPU user need not spend
    except ImportError:
        if device == "auto":
            return "cpu"
        raise InputError(f"device {device!r} needs PyTorch; install it with: pip install 'prune4rel[train]'") from None
    if torch.cuda.is_available():
        number = 0 if device in ("auto", "cuda") else int(device.removeprefix("cuda:"))
        if number >= torch.cuda.device_count():
            raise InputError(
                f"device {device!r} was asked for, but PyTorch sees {torch.cuda.device_count()} here, counted from 0"
            )
        return f"cuda:{number}"
    if device == "auto":
        return "cpu"
    raise InputError(f"device {device!r} was asked for, but PyTorch sees no CUDA device here; use 'auto' or 'cpu'")


def _may_have_cuda() -> bool:
    """Whether it is worth importing PyTorch to look for a GPU: a driver leaves traces in /dev."""
    return os.name == "nt" or Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists()


class Clock:
    """Seconds of each step of some work, by name, in `laps`."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under `name`."""
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
