"""Why a figure differs from the paper's: selections made the way the authors' code makes them.

    python benchmarks/experiments.py --data DIR grand             GraNd by one network, as the code has it, and by three
    python benchmarks/experiments.py --data DIR forgetting        Forgetting counted over more or fewer epochs, and with
                                                                  SOP instead of SOP+
    python benchmarks/experiments.py --data DIR moderate          Moderate with batch normalisation left in training
                                                                  mode, and by strong views
    python benchmarks/experiments.py --data DIR ssp               SSP by features of the warmed-up network instead of
                                                                  one that learnt without labels
    python benchmarks/experiments.py --data DIR grand --train "network 1"
                                                                  and SOP+ trained on the fifth picked by rows so named
    python benchmarks/experiments.py digits                       all on small data, to see that it works

DIR holds CIFAR-10N in its public layout; labels are the set `worst`. What is shown is the share of wrong labels among
the picks, by ratio, beside that of Table 4 of the paper, and test accuracy in the last epoch beside that of Table 1.
"""

import argparse
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import prune4rel as p4r
from common import table
from prune4rel.augment.draws import ViewName
from prune4rel.data import Dataset, load_dataset
from prune4rel.recipes.catalogue import get
from prune4rel.recipes.cells import ACCURACY, NOISE, paper_method
from prune4rel.recipes.compare import printed
from prune4rel.training import make_plan, train, warm_up
from prune4rel.training.trainer import Trainer, train_briefly

RATIOS = (0.2, 0.4, 0.6, 0.8)
TRAINED = RATIOS[0]
NETWORKS = 3
COUNTED = {"sop": (10,), "sop+": (3, 4, 5, 7, 10, 15, 20, 30)}
BATCH = 256

Row = tuple[str, ...]
Floats = NDArray[np.float32]


def printed_in(recipe: str, metric: str, **wanted: Any) -> Row:
    """Return what the paper has for those cells of a recipe that are as wanted."""
    chosen = get(recipe)
    cells = [cell for cell in chosen.cells if all(getattr(cell, name) == value for name, value in wanted.items())]
    found = [printed(chosen, cell, metric) for cell in cells]
    return tuple(f"{each.mean:.1f}" for each in found if each)


@dataclass(frozen=True)
class Bench:
    """What experiments are made on, where, and which rows are trained on: those whose name has `train` in it."""

    data: Dataset
    device: str
    train: str | None

    def trainer(self, learner: str, keep: Collection[str] = ()) -> Trainer:
        """Make ready to warm a learner up on everything."""
        plan = make_plan(self.data, learner)
        return Trainer(self.data, np.arange(len(self.data.train)), plan, device=self.device, keep=keep)

    def row(self, name: str, method: str, **signals: Any) -> Row:
        """Share of wrong labels among the picks, in per cent, by ratio, and how SOP+ does on the first of them."""
        labels, clean = self.data.train.labels, self.data.train.clean_labels
        picks = [p4r.select(method, labels=labels, ratio=ratio, **signals).indices for ratio in RATIOS]
        row = (name, *(f"{100 * (labels != clean)[chosen].mean():.1f}" for chosen in picks))
        if self.train is not None:
            row += (self.accuracy(picks[0]) if self.train in name else "",)
        print(*row, flush=True)
        return row

    def accuracy(self, picks: NDArray[np.int64]) -> str:
        """Test accuracy of SOP+ trained on the picks, in per cent, in the last epoch."""
        with tempfile.TemporaryDirectory() as folder:
            options: dict[str, Any] = {"device": self.device, "evaluate_every": 10**6, "progress": True}
            result = train(self.data, picks, folder=Path(folder) / "run", **options)
        found = result.accuracies()["test_accuracy"]
        return "-" if found is None else f"{100 * found:.1f}"

    def papers(self, method: str) -> Row:
        """Return what Tables 4 and 1 have for CIFAR-10N worst."""
        where = {"noise": "worst", "method": method}
        wrong = printed_in("table4", NOISE, **where)
        accuracy = printed_in("table1", ACCURACY, learner="sop+", ratio=TRAINED, **where)
        return ("paper", *wrong, *(() if self.train is None else accuracy))

    def show(self, method: str, rows: Iterable[Row]) -> None:
        """Make all rows, and print them as a table with the paper's."""
        found = list(rows)
        beside = [self.papers(method)] if self.data.name == "cifar10n" else []
        trained = [] if self.train is None else [f"SOP+ on {TRAINED}, %"]
        header = (f"{method}: wrong labels, %", *map(str, RATIOS), *trained)
        table(f"{self.data.name}, after a warm-up with SOP+", header, [*beside, *found])


def warm(trainer: Trainer, epochs: int) -> None:
    """Go on until so many epochs are done."""
    train_briefly(trainer, epochs, title="warm-up", folder=None, save_every=60.0)


def grand(bench: Bench) -> Iterator[Row]:
    """GraNd by each of some networks, and by the mean over them."""
    norms = []
    for seed in range(NETWORKS):
        options: dict[str, Any] = {"view": "none", "device": bench.device, "seed": seed, "progress": True}
        signals = warm_up(bench.data, extras=("grad_norms",), **options)
        norms.append(np.asarray(signals.grad_norms))
        yield bench.row(f"network {seed + 1}", "grand", grad_norms=norms[-1])
    yield bench.row(f"mean over {NETWORKS}", "grand", grad_norms=np.mean(norms, axis=0))


def forgetting(bench: Bench) -> Iterator[Row]:
    """Forgetting by what was counted up to some epochs of one warm-up."""
    for learner, numbers in COUNTED.items():
        trainer = bench.trainer(learner, keep=["forgetting"])
        for epochs in numbers:
            with trainer.settings():
                warm(trainer, epochs)
            counts = trainer.training.record.histories()["forgetting"].numpy()
            options = paper_method("Forgetting", "cifar10n").options
            yield bench.row(f"{learner}, {epochs} epochs", "forgetting", forgetting=counts, **options)


def by_embeddings(bench: Bench, method: str) -> Iterator[Row]:
    """Select by what the network remembers, and by batches normalised by themselves, of images and strong views."""
    for name, embeddings in warmed_up(bench).items():
        yield bench.row(name, method, embeddings=embeddings)


def warmed_up(bench: Bench) -> dict[str, Floats]:
    """Embeddings by a network that SOP+ has warmed up, by name of mode and view."""
    trainer = bench.trainer("sop+")
    with trainer.settings():
        warm(trainer, trainer.plan.warmup_epochs)
        # in this order: in training mode the network also changes what it remembers
        return {
            f"{mode} mode, {view} view": features(trainer, view, training=mode == "training")
            for mode in ("evaluation", "training")
            for view in ("plain", "strong")
        }


@torch.no_grad()
def features(trainer: Trainer, view: ViewName, *, training: bool) -> Floats:
    """Embeddings of all examples in order."""
    network = trainer.training.learner.model_networks()[0]
    network.train(training)
    batches = trainer.loader.over(
        batch=BATCH, shuffle=False, drop_last=False, transform=trainer.training.feed.views[view]
    )
    half = trainer.training.stepper.half
    with torch.autocast(trainer.device.type, torch.bfloat16, enabled=half):
        return np.concatenate([network.embed(batch.views[0]).float().cpu().numpy() for batch in batches])


EXPERIMENTS: dict[str, tuple[str, Callable[[Bench], Iterator[Row]]]] = {
    "forgetting": ("Forgetting", forgetting),
    "grand": ("GraNd", grand),
    "moderate": ("Moderate", partial(by_embeddings, method="moderate")),
    "ssp": ("SSP", partial(by_embeddings, method="ssp")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*EXPERIMENTS, "digits"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--train", help="train on what rows with this in their name picked")
    chosen = parser.parse_args()
    small = chosen.what == "digits"
    data = load_dataset("digits", noise=0.4) if small else load_dataset("cifar10n", chosen.data, noise="worst")
    bench = Bench(data, chosen.device, chosen.train)
    for name in EXPERIMENTS if small else [chosen.what]:
        method, rows = EXPERIMENTS[name]
        bench.show(method, rows(bench))


if __name__ == "__main__":
    main()
