"""What the machine has: memory, threads, accelerators."""

import math
import os
import time
from contextlib import suppress
from pathlib import Path

from prune4rel.errors import InputError

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


def threads() -> int:
    """Return how many threads may run at once here (``PRUNE4REL_THREADS`` overrides)."""
    wanted = os.environ.get("PRUNE4REL_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def parse_bytes(text: str | float) -> int:
    """Read a size such as ``"8GB"``, ``"512 MiB"`` or a plain number of bytes.

    >>> parse_bytes("8GB") == 8 * 2**30, parse_bytes("1.5 MiB"), parse_bytes(1000)
    (True, 1572864, 1000)
    """
    if isinstance(text, int | float):
        return int(text)
    word = text.strip().upper().removesuffix("B").removesuffix("I").strip()
    unit = word[-1:] if word[-1:] in "KMGT" else ""
    try:
        return int(float(word.removesuffix(unit)) * _UNITS[unit])
    except ValueError:
        raise ValueError(f"cannot read {text!r} as a size in bytes; write it like 8GB or 512MB") from None


def format_bytes(count: float) -> str:
    """Write a number of bytes for people.

    >>> format_bytes(3 * 2**30), format_bytes(512)
    ('3.0 GiB', '512 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """Write a duration for people.

    >>> format_seconds(0.25), format_seconds(75), format_seconds(7300)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


WORTH_A_GPU = 1e11
"""Multiplications below which starting a GPU takes longer than doing them on the CPU."""


def resolve_device(device: str, work: float = math.inf) -> str:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` into a device that is really there.

    ``"auto"`` stays on the CPU where `work`, in multiplications, is too little for a GPU.
    """
    if device == "cpu" or (device == "auto" and (work < WORTH_A_GPU or not _may_have_cuda())):
        return "cpu"
    if device != "auto" and not device.startswith("cuda"):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {device!r}")
    import torch  # noqa: PLC0415 - two seconds that a CPU user need not spend

    if torch.cuda.is_available():
        return "cuda:0" if device in ("auto", "cuda") else device
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
