"""What `clean` finds in real data with people's errors, counted against the true labels.

    python benchmarks/gallery.py VECTORS            writes the tables into docs/gallery.md

VECTORS is a folder that `benchmarks/vectors.py` has written of public data; sets that are missing there are left out.
Nothing of the data goes into the page but numbers of rows, class names and counts.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import prune4rel as p4r
from prune4rel.recipes.write import as_table

PAGE = Path(__file__).parent.parent / "docs" / "gallery.md"
PLACE = re.compile(r"(<!-- table (?P<name>[^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
FIRST = (50, 100, 200, 500)
MOST_PAIRS, MOST_ROWS = 5, 8
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NEWS = ("Business", "Sci/Tech", "Sports", "World")


@dataclass(frozen=True)
class Found:
    """A set of labels, judged: given, true, suggested and corrected ones, and the rows in the order of suspicion.

    `corrected_told` are corrected ones once the share of wrong ones is told, in whole per cents.
    """

    given: NDArray[np.int64]
    truth: NDArray[np.int64]
    suggested: NDArray[np.int64]
    corrected: NDArray[np.int64]
    corrected_told: NDArray[np.int64]
    order: NDArray[np.int64]
    rate: float
    names: tuple[str, ...]


def judged(vectors: Path, name: str, encoder: str, noise: str) -> Found | None:
    """Judge one set by frozen vectors; None where they are missing."""
    files = vectors / f"{name}.{encoder}.npy", vectors / f"{name}.labels.npz"
    if not all(file.exists() for file in files):
        return None
    with np.load(files[1]) as labels:
        given, truth = labels[noise], labels["clean"]
    C = int(max(given.max(), truth.max())) + 1
    names = {10: CIFAR10, 4: NEWS}.get(C, tuple(map(str, range(C))))
    rows, share = np.load(files[0]), round(float((given != truth).mean()), 2)
    found = p4r.clean(embeddings=rows, labels=given, class_names=names)
    told = p4r.clean(embeddings=rows, labels=given, class_names=names, noise_rate=share).corrected_label
    order = np.argsort(found.label_score, kind="stable")
    return Found(given, truth, found.predicted_label, found.corrected_label, told, order, found.noise_rate, names)


def summary(found: Found) -> list[str]:
    """How many are wrong and by estimate; wrong ones among the most suspicious; labelled right before and after."""
    wrong = found.given != found.truth
    among = [f"{100 * wrong[found.order[:first]].mean():.0f}" for first in FIRST]
    right = [
        f"{100 * (labels == found.truth).mean():.1f}" for labels in (found.given, found.corrected, found.corrected_told)
    ]
    return [f"{len(wrong):,}", f"{100 * wrong.mean():.1f}", f"{100 * found.rate:.1f}", *among, *right]


def pairs(found: Found) -> str:
    """Which classes are given for which: as found, and as it is."""
    rows = []
    C = len(found.names)
    changed = found.corrected != found.given
    times = np.bincount(found.given[changed] * C + found.corrected[changed], minlength=C * C)
    true = np.bincount(found.given * C + found.truth, minlength=C * C)
    for pair in np.argsort(-times, kind="stable")[: min(MOST_PAIRS, np.count_nonzero(times))]:
        given, better = divmod(int(pair), C)
        rows.append([found.names[given], found.names[better], str(times[pair]), str(true[pair])])
    return (
        as_table(["given", "should be", "labels changed so", "truly so"], rows)
        if rows
        else "No label is changed unseen."
    )


def worst(found: Found) -> str:
    """List the most suspicious rows: the given label, the suggested one and the true one."""
    rows = []
    for row in found.order[:MOST_ROWS]:
        words = (found.names[int(labels[row])] for labels in (found.given, found.suggested, found.truth))
        rows.append([str(row), *words])
    return as_table(["row", "given", "suggested", "true"], rows)


SETS = {
    "CIFAR-10N worst": ("cifar10", "lite0", "worst"),
    "CIFAR-10N random1": ("cifar10", "lite0", "random1"),
    "CIFAR-10N aggre": ("cifar10", "lite0", "aggre"),
    "CIFAR-100N": ("cifar100", "lite0", "noisy"),
    "NoisyAG-News, sentence vectors": ("noisyag", "minilm", "noisy"),
    "NoisyAG-News, word vectors": ("noisyag", "wordllama", "noisy"),
    "NoisyAG-News, word counts": ("noisyag", "tfidf", "noisy"),
}
SHOWN = {"CIFAR-10N": "CIFAR-10N worst", "NoisyAG": "NoisyAG-News, sentence vectors"}


def tables(vectors: Path) -> dict[str, str]:
    """All tables of the page whose vectors are there, by name."""
    found = {name: judged(vectors, *which) for name, which in SETS.items()}
    rows = [[name, *summary(one)] for name, one in found.items() if one is not None]
    header = ["set", "labels", "wrong, %", "by estimate, %", *(f"of the first {first}, % wrong" for first in FIRST)]
    made = {"all": as_table([*header, "right as given, %", "as corrected, %", "rate told, %"], rows)} if rows else {}
    for title, name in SHOWN.items():
        if (one := found[name]) is not None:
            made |= {f"{title} pairs": pairs(one), f"{title} worst": worst(one)}
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    made = tables(parser.parse_args().vectors)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        PLACE.sub(lambda at: f"{at[1]}\n{made[at['name']]}\n\n{at[3]}" if at["name"] in made else at[0], page),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
