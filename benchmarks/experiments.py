"""Why a figure differs from the paper's: selections made the way the authors' code makes them.

    python benchmarks/experiments.py --data DIR grand       GraNd by one network, as the code has it, and by three
    python benchmarks/experiments.py --data DIR moderate    Moderate, with batch normalisation left in training mode
    python benchmarks/experiments.py digits                 both on small data, to see that it works

DIR holds CIFAR-10N in its public layout; labels are the set `worst`. What is shown is the share of wrong labels among
the picks, by ratio, beside that of Table 4 of the paper.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import prune4rel as p4r
from common import table
from prune4rel.data import Dataset, load_dataset
from prune4rel.recipes.catalogue import get
from prune4rel.recipes.cells import NOISE
from prune4rel.recipes.compare import printed
from prune4rel.training import make_plan, warm_up
from prune4rel.training.brief import train_briefly
from prune4rel.training.workshop import Workshop

RATIOS = (0.2, 0.4, 0.6, 0.8)
SOME = (1, 3)
BATCH = 256


def wrong_labels(data: Dataset, method: str, **signals: Any) -> list[str]:
    """Share of wrong labels among the picks, in per cent, by ratio."""
    labels, clean = data.train.labels, data.train.clean_labels
    picks = [p4r.select(method, labels=labels, ratio=ratio, **signals).indices for ratio in RATIOS]
    return [f"{100 * (labels != clean)[chosen].mean():.1f}" for chosen in picks]


def papers(method: str) -> list[str]:
    """Return what Table 4 has for CIFAR-10N worst."""
    chosen = get("table4")
    cells = [cell for cell in chosen.cells if (cell.noise, cell.method) == ("worst", method)]
    found = [printed(chosen, cell, NOISE) for cell in cells]
    return [f"{each.mean:.1f}" for each in found if each]


def show(data: Dataset, method: str, rows: Iterable[tuple[str, ...]]) -> None:
    beside = [("paper", *papers(method))] if data.name == "cifar10n" else []
    header = (f"{method}: wrong labels, %", *map(str, RATIOS))
    table(f"{data.name}, after a warm-up with SOP+", header, [*beside, *rows])


def grand(data: Dataset, device: str, repeats: Iterable[int]) -> list[tuple[str, ...]]:
    """GraNd by the mean over some networks, of which the first is the same each time."""
    rows = []
    for count in repeats:
        signals = warm_up(data, extras=("grad_norms",), view="none", repeats=count, device=device, progress=True)
        named = f"{count} network{'s' if count > 1 else ''}"
        rows.append((named, *wrong_labels(data, "grand", grad_norms=signals.grad_norms)))
    return rows


def moderate(data: Dataset, device: str) -> list[tuple[str, ...]]:
    """Moderate by features of batches that are normalised by themselves, and by what the network remembers."""
    plan = make_plan(data, "sop+")
    shop = Workshop(data, np.arange(len(data.train)), plan, device=device)
    with shop.settings():
        train_briefly(shop, plan.warmup_epochs, title="warm-up", folder=None, save_every=60.0)
        # in this order: in training mode the network also changes what it remembers
        modes = {"evaluation": features(shop, training=False), "training": features(shop, training=True)}
    return [(f"{name} mode", *wrong_labels(data, "moderate", embeddings=z)) for name, z in modes.items()]


@torch.no_grad()
def features(shop: Workshop, *, training: bool) -> NDArray[np.float32]:
    """Embeddings of all examples, as they are, in order."""
    network = shop.training.learner.speakers()[0]
    network.train(training)
    batches = shop.loader.over(batch=BATCH, shuffle=False, drop_last=False, transform=shop.training.feed.views["plain"])
    half = shop.training.stepper.half
    with torch.autocast(shop.device.type, torch.bfloat16, enabled=half):
        return np.concatenate([network.embed(batch.views[0]).float().cpu().numpy() for batch in batches])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("grand", "moderate", "digits"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args()
    small = chosen.what == "digits"
    data = load_dataset("digits", noise=0.4) if small else load_dataset("cifar10n", chosen.data, noise="worst")
    if chosen.what != "moderate":
        show(data, "GraNd", grand(data, chosen.device, SOME))
    if chosen.what != "grand":
        show(data, "Moderate", moderate(data, chosen.device))


if __name__ == "__main__":
    main()
