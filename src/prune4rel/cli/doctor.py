"""``prune4rel doctor``: what this machine has, and what is missing for what."""

from prune4rel.cli import app

EXTRAS = {
    "vision": ("timm", "PIL"),
    "report": ("jinja2", "matplotlib"),
    "ann": ("faiss",),
    "ray": ("ray",),
    "hf": ("datasets",),
    "track": ("tensorboard", "mlflow", "wandb"),
    "umap": ("umap",),
    "dev": ("pytest", "hypothesis", "mypy", "ruff", "mpmath"),
}


@app.command()
def doctor() -> None:
    """Show versions, devices, speed, and what is missing for which extra."""
    from importlib.util import find_spec

    from prune4rel.cli.tables import print_facts
    from prune4rel.machine import available_memory, format_bytes, threads
    from prune4rel.provenance import versions

    extras = []
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
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

    import torch

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
