"""Tiny stand-ins for the data sets, so that every recipe can be run in full shape within seconds."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from prune4rel.recipes.cells import PaperCell
from prune4rel.recipes.jobs import Settings
from prune4rel.recipes.setting import SOURCES
from prune4rel.storage import write_arrays

N, TEST, SIDE = 60, 20, 8
WRONG = 0.3
EPOCHS = 2
"""DivideMix warms up for at most half of its epochs, and methods need what it says then."""


def stand_in(cells: Iterable[PaperCell], folder: Path, settings: Settings) -> Settings:
    """Write a stand-in for every data set of some cells, unless it is there, and return settings that use them.

    Parameters
    ----------
    cells
        What is to be run.
    folder
        Where the stand-ins go; must exist.
    settings
        What to change: data, network and epochs.
    """
    places = {}
    for dataset, noise in dict.fromkeys((cell.dataset, cell.noise) for cell in cells):
        for number, labels in enumerate(SOURCES[dataset].labels[noise]):
            path = folder / f"{dataset}{labels and '-'}{labels}.npz"
            if not path.exists():
                write_arrays(path, pictures(SOURCES[dataset].classes, number), force=True)
            places[dataset, labels] = path
    tiny = {"device": "cpu", "network": "mlp", "network_options": {"width": 8, "depth": 1}}
    options = {"epochs": EPOCHS, "warmup_epochs": 1, **settings.options, **tiny}
    return replace(settings, stand_in=places, options=options)


def pictures(classes: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return images of plain colours with noise, as the data set `arrays` takes them; some labels are wrong.

    >>> arrays = pictures(10)
    >>> arrays["images"].shape, len(arrays["test_labels"]), float((arrays["labels"] != arrays["clean_labels"]).mean())
    ((60, 8, 8, 3), 20, 0.3)
    """
    rng = np.random.default_rng(seed)
    colours = rng.integers(40, 216, size=(classes, 1, 1, 3))
    clean = np.arange(N + TEST) % min(classes, N)
    images = np.clip(colours[clean] + rng.normal(0, 20, (N + TEST, SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
    given = clean[:N].copy()
    moved = rng.permutation(N)[: round(WRONG * N)]
    given[moved] = (given[moved] + 1) % classes
    return {
        "images": images[:N],
        "labels": given,
        "clean_labels": clean[:N],
        "test_images": images[N:],
        "test_labels": clean[N:],
        "class_names": np.array([f"class{number}" for number in range(classes)]),
    }
