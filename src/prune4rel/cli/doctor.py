"""``prune4rel doctor``: what this machine has, and what is missing for what."""

from prune4rel.cli import app


@app.command()
def doctor() -> None:
    """Show versions, devices, speed, and what is missing for which extra."""
    from prune4rel.cli.tables import print_facts
    from prune4rel.machine import available_memory, format_bytes, threads
    from prune4rel.provenance import versions

    extras = []
    for extra, packages in _extras().items():
        missing = [package for package in packages if not _installed(package)]
        state = f"missing {', '.join(missing)}; pip install 'prune4rel[{extra}]'" if missing else "complete"
        extras.append((f"extra {extra}", state))
    print_facts(
        [
            *versions().items(),
            ("threads", str(threads())),
            ("free memory", format_bytes(available_memory())),
            ("CPU product", f"{_cpu_rate() / 1e9:.0f} GFLOP/s in float32"),
            *_gpus(),
            *extras,
        ]
    )


def _extras() -> dict[str, list[str]]:
    """Read the packages of every extra, as the metadata of this package say."""
    import re
    from collections import defaultdict
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needed = requires("prune4rel") or []
    except PackageNotFoundError:  # a folder on the path that was never installed
        needed = []
    lines: dict[str, list[str]] = defaultdict(list)
    for line in needed:
        if extra := re.search(r"extra == ['\"]([\w-]+)['\"]", line):
            lines[extra[1]].append(line)

    def packages_of(extra: str) -> list[str]:
        found: list[str] = []
        for line in lines[extra]:
            own = re.match(r"prune4rel\[([\w-]+)\]", line)
            found += packages_of(own[1]) if own else re.findall(r"^[\w.-]+", line)
        return found

    return {extra: packages_of(extra) for extra in list(lines)}


def _installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _cpu_rate() -> float:
    """Floating-point operations a second in a matrix product."""
    import time

    import numpy as np

    a, b = np.random.default_rng(0).random((2, 1536, 1536), dtype=np.float32)
    a @ b
    begin = time.perf_counter()
    for _ in range(3):
        a @ b
    return 3 * 2 * 1536**3 / (time.perf_counter() - begin)


def _gpus() -> list[tuple[str, str]]:
    import time

    try:
        import torch
    except ModuleNotFoundError:
        return [("GPU", "PyTorch, which would look for one, is not installed: pip install 'prune4rel[train]'")]
    if not torch.cuda.is_available():
        return [("GPU", "none that PyTorch can use")]
    found = []
    for number in range(torch.cuda.device_count()):
        device = f"cuda:{number}"
        a = torch.randn((8192, 8192), dtype=torch.float16, device=device)
        a @ a
        torch.cuda.synchronize(device)
        begin = time.perf_counter()
        for _ in range(5):
            a @ a
        torch.cuda.synchronize(device)
        rate = 5 * 2 * 8192**3 / (time.perf_counter() - begin)
        memory = torch.cuda.get_device_properties(number).total_memory / 2**30
        name = torch.cuda.get_device_name(number)
        found.append((device, f"{name}, {memory:.0f} GiB, {rate / 1e12:.0f} TFLOP/s in float16"))
    return found
