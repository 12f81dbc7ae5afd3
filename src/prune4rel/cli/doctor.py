"""``prune4rel doctor``: what this machine has, and what is missing for what."""

from typing import Any

from prune4rel.cli import app
from prune4rel.cli.tables import AsJson


@app.command()
def doctor(*, as_json: AsJson = False) -> None:
    """Show versions, devices, speed, and what is missing for which extra.

    --json is for a report of a bug: it says the same, and no path, host or name of yours.
    """
    from prune4rel.cli.tables import print_facts, print_json
    from prune4rel.machine import format_bytes

    found = examine()
    if as_json:
        print_json(found)
        return
    rows = [*found["versions"].items(), ("system", " ".join(found["system"].values()))]
    rows += [("threads", str(found["threads"])), ("free memory", format_bytes(found["free_memory"]))]
    rows += [("CPU product", f"{found['cpu_gflops']} GFLOP/s in float32")]
    rows += [
        (f"cuda:{number}", f"{gpu['name']}, {gpu['gib']} GiB, {gpu['tflops']} TFLOP/s in float16")
        for number, gpu in enumerate(found["gpus"])
    ] or [("GPU", found["without_gpu"])]
    for extra, packages in found["extras"].items():
        missing = [package for package, version in packages.items() if version is None]
        state = f"missing {', '.join(missing)}; pip install 'prune4rel[{extra}]'" if missing else "complete"
        rows.append((f"extra {extra}", state))
    print_facts(rows)


def examine() -> dict[str, Any]:
    """Return what a report of a bug needs; nothing in it tells whose machine it is."""
    import os
    import platform
    import re

    from prune4rel.machine import available_memory, threads
    from prune4rel.provenance import versions

    release = re.match(r"[\d.]*\d", platform.release())  # what follows may be a name that somebody gave
    gpus, without_gpu = _gpus()
    return {
        "versions": versions(),
        "system": {
            "name": platform.system(),
            "release": release[0] if release else "",
            "machine": platform.machine(),
            "libc": "-".join(platform.libc_ver()),
        },
        "threads": threads(),
        "settings": sorted(name for name in os.environ if name.startswith("PRUNE4REL_")),
        "free_memory": available_memory(),
        "cpu_gflops": round(_cpu_rate() / 1e9),
        "blas": _blas(),
        "gpus": gpus,
        **({} if gpus else {"without_gpu": without_gpu}),
        "extras": {extra: {each: _version_of(each) for each in names} for extra, names in _extras().items()},
    }


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


def _version_of(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _blas() -> list[str]:
    """Return which libraries multiply matrices and run threads, with versions and without their paths."""
    import numpy  # noqa: F401, ICN001 - loads them
    from threadpoolctl import threadpool_info

    found = ([str(each.get(name) or "") for name in ("internal_api", "version")] for each in threadpool_info())
    return sorted({" ".join(filter(None, words)) for words in found})


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


def _gpus() -> tuple[list[dict[str, Any]], str]:
    """Return what every GPU is and does; or why there is none."""
    import time

    try:
        import torch
    except ModuleNotFoundError:
        return [], "PyTorch, which would look for one, is not installed: pip install 'prune4rel[train]'"
    if not torch.cuda.is_available():
        return [], "none that PyTorch can use"
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
        found.append({"name": torch.cuda.get_device_name(number), "gib": round(memory), "tflops": round(rate / 1e12)})
    return found, ""
