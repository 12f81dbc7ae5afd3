"""Vectors of images and texts, which an encoder makes once for a run, instead of a network that is trained on them."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prune4rel.errors import InputError
from prune4rel.progress import Progress
from prune4rel.steps.data import DataOptions
from prune4rel.steps.options import Options, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from prune4rel.data import Dataset, Split
    from prune4rel.encoders import Encoder

ENCODER = "Encoder"
PLACE, TEST = "embeddings", "test"
MOST_SHOWN = 10


@dataclass(frozen=True)
class EncoderOptions(Options):
    """What makes vectors of the examples."""

    encoder: str | None = option(
        None, "What makes vectors of images or texts: see `prune4rel encoders`; a good one unless told.", panel=ENCODER
    )
    weights: str | None = option(
        None, "File or folder of the encoder's weights; from the hub unless told.", panel=ENCODER
    )
    image_size: int | None = option(
        None,
        "Height and width an encoder gets to see; its own unless told.",
        flag="--size,--image-size",
        least=1,
        panel=ENCODER,
    )
    encoder_options: dict[str, Any] = option(
        {}, "An option of the encoder as NAME=VALUE; repeat.", flag="--encoder-option", panel=ENCODER
    )
    cache: bool = option(
        True,
        "Remember embeddings by encoder and content, and use those known.",
        flag="--cache/--no-cache",
        panel=ENCODER,
    )

    @property
    def about_encoder(self) -> bool:
        """Whether any option is about an encoder."""
        return any(
            getattr(self, name) not in (None, {}) for name in ("encoder", "weights", "image_size", "encoder_options")
        )

    def open_encoder(self, kind: str, device: str) -> "Encoder":
        """Open the encoder that was named, or the usual one for a kind of examples."""
        from prune4rel.encoders import default_encoder, open_encoder

        if kind == "features":
            raise InputError(
                "these examples are vectors already; leave --encoder and what belongs to it out", "encoder"
            )
        name, own = self.encoder or default_encoder(kind), dict(self.encoder_options)
        if ":" in name and not name.startswith(("onnx:", "run:")):
            own.setdefault("kind", "texts" if kind == "texts" else "images")
        return open_encoder(name, self.weights, self.image_size, device, **own)


@dataclass(frozen=True)
class EmbedOptions(EncoderOptions, DataOptions):
    """A run on the vectors of an encoder, where one is named.

    `home` is the folder of the run, in which they lie.
    """

    home: str | None = None

    def encoder_of_run(self, kind: str, device: str) -> "Encoder | None":
        """Open the encoder that was named; None where a run goes without."""
        if self.encoder is not None:
            return self.open_encoder(kind, device)
        if self.about_encoder:
            raise InputError("encoder: name one (--encoder), or leave weights and options of encoders out", "encoder")
        return None

    def in_use(self, dataset: "Dataset") -> "Dataset":
        """Return the data set with vectors in the place of images or texts, where there is an encoder."""
        if self.encoder is None or self.home is None:
            return dataset
        places = {"train": Path(self.home, PLACE), "test": Path(self.home, PLACE, TEST)}
        found = {}
        for title, split in dataset.splits().items():
            rows, vectors = _read(places[title], len(split))
            found[title] = replace(split.subset(rows), images=None, files=None, texts=None, features=vectors)
        return in_vectors(dataset, found)

    def seen(self, dataset: "Dataset") -> "Dataset":
        """Return the same examples as people see them: images and texts."""
        if self.encoder is None or self.home is None:
            return dataset
        return replace(dataset, train=dataset.train.subset(_read(Path(self.home, PLACE), len(dataset.train))[0]))


def embed_for(options: EmbedOptions, dataset: "Dataset", encoder: "Encoder", progress: Progress) -> None:
    """Write the vectors of a run into its folder, unless they are there; of other examples they are made anew."""
    from prune4rel.encoders.embedding import ready, write_embeddings

    if options.home is None:
        raise AssertionError("a run has a folder")
    encoder = ready(encoder, dataset.train)
    for title, split in dataset.splits().items():
        broken = write_embeddings(
            split,
            encoder,
            Path(options.home, PLACE) if title == "train" else Path(options.home, PLACE, TEST),
            class_names=dataset.class_names,
            skip_broken=options.skip_broken,
            cache=options.cache,
            force=True,
            splits=list(dataset.splits()) if title == "train" else None,
            progress=progress,
        )
        for reason in list(broken.values())[:MOST_SHOWN]:
            progress.say(f"left out: {reason}")
    _read.cache_clear()


def in_vectors(dataset: "Dataset", splits: "Mapping[str, Split]") -> "Dataset":
    """Return a data set with other splits, which hold vectors."""
    return replace(dataset, train=splits["train"], test=splits.get("test"), mean=None, std=None, image_size=None)


@lru_cache(maxsize=2)
def _read(folder: Path, n: int) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """Return which of n examples could be read, and their vectors."""
    import numpy as np

    from prune4rel.signals import Signals

    signals = Signals.load(folder)
    if len(signals) != n:
        raise InputError(f"{folder}: holds vectors of {len(signals)} examples, but there are {n}; run it again")
    rows = np.arange(n) if signals.known is None else np.flatnonzero(signals.known)
    vectors = signals.need("embeddings")
    return rows, vectors if len(rows) == n else vectors[rows]
