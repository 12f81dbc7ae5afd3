"""Small folders of everything that is read here, and the function that reads each: what the fuzzer damages."""

import csv
import io
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from safetensors.numpy import save_file
from tests.pipeline.tiny import tiny
from tests.training.small import features

import prune4rel as p4r
from prune4rel.cleaning.write import write_folder
from prune4rel.data import load_dataset
from prune4rel.data.decode import BrokenImageError, content_of, open_rgb
from prune4rel.data.source import dataset_of
from prune4rel.data.unpickle import unpickle
from prune4rel.decisions import Decision, DecisionLog, read_decisions, write_csv
from prune4rel.encoders import open_encoder
from prune4rel.encoders.embedding import embed
from prune4rel.errors import InputError
from prune4rel.file_prints import prints_of
from prune4rel.inference.model import load_model
from prune4rel.labels import Labels
from prune4rel.networks.weights import read_tensors
from prune4rel.pipeline import collect, run
from prune4rel.pipeline.collect import read_manifest
from prune4rel.pipeline.config import Config
from prune4rel.progress import Progress
from prune4rel.recipes import harvest
from prune4rel.review.folder import ReviewFolder
from prune4rel.selection import Selection
from prune4rel.shards import open_shards
from prune4rel.signal_shards import open_signals, write_signals
from prune4rel.signals import Signals
from prune4rel.storage import read_arrays, write_arrays
from prune4rel.training import Result, train
from prune4rel.training.checkpoint import Checkpoints

RNG = np.random.default_rng(0)
N = 12


@dataclass(frozen=True)
class Sample:
    """Something on disk: how it is made, and how it is read; `ours` if it has to tell damage from what was written."""

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    ours: bool = False


def arrays():
    probabilities = RNG.dirichlet(np.ones(3), N).astype(np.float32)
    return {
        "labels": np.arange(N) % 3,
        "probabilities": probabilities,
        "embeddings": RNG.normal(size=(N, 4)).astype(np.float32),
        "losses": RNG.random(N),
        "ids": np.array([f"example {k}" for k in range(N)]),
        "class_names": np.array(["a", "b", "c"]),
    }


def signals():
    made = arrays()
    return Signals(class_names=tuple(made.pop("class_names").tolist()), **made)


def told(signals):
    return {name: np.asarray(array) for name, array in signals.arrays().items()}


def save_signals(name):
    return lambda home: signals().save(home / name)


def load_signals(name):
    return lambda home: told(Signals.load(home / name))


def table():
    rows = [("good film", "yes", 1), ("bad film", "no", 2), ("fine film", "yes", 3), ("poor film", "no", 4)]
    return pa.table({"text": [a for a, _, _ in rows], "label": [b for _, b, _ in rows], "id": [c for _, _, c in rows]})


def write_text_table(name, delimiter):
    def write(home):
        with (home / name).open("w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([table().column_names, *zip(*table().to_pydict().values(), strict=True)])

    return write


def write_arrow(home):
    with pa.OSFile(str(home / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table().schema) as writer:
        writer.write_table(table())


def write_hf(home):
    folder = home / "hf"
    folder.mkdir()
    pictures = pa.array([{"bytes": png(k), "path": None} for k in range(4)])
    made = pa.table({"image": pictures, "label": [0, 1, 0, 1]})
    features = {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}, "image": {"_type": "Image"}}
    made = made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    with pa.OSFile(str(folder / "data-0.arrow"), "wb") as sink, pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-0.arrow"}], "_split": "train"}))


def png(seed=0, form="PNG"):
    sink = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 5, 3), dtype=np.uint8)).save(sink, form)
    return sink.getvalue()


def write_tar(home):
    with tarfile.open(home / "train.tar", "w") as whole:
        for k in range(4):
            for name, content in ((f"{k}.png", png(k)), (f"{k}.json", b'{"label": %d}' % (k % 2))):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                whole.addfile(member, io.BytesIO(content))


def write_folder_of_images(home):
    for k in range(6):
        place = home / "images" / ("cat", "dog")[k % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{k}.{('png', 'jpg')[k % 2]}").write_bytes(png(k, ("PNG", "JPEG")[k % 2]))


def open_pictures(home):
    found = []
    for path in sorted(home.glob("*.*")):
        if not path.is_file():  # a pipe or an endless file: readers of folders refuse it before it comes to pictures
            raise InputError(f"{path.name}: not a file")
        try:
            found.append(np.asarray(open_rgb(path.read_bytes(), path.name)))
        except BrokenImageError as error:
            raise InputError(str(error)) from None
    return found


def write_pictures(home):
    for form in ("PNG", "JPEG", "WEBP", "BMP", "TIFF", "PPM"):
        (home / f"a.{form.lower()}").write_bytes(png(0, form))


def dataset(source):
    def read(home):
        found, _ = dataset_of(home / source)
        rows = [found.train.labels.tolist(), found.class_names, found.train.texts, found.train.features]
        files = []
        for file in found.train.files or ():
            try:
                files.append(np.asarray(open_rgb(content_of(file), str(file))))
            except (BrokenImageError, OSError) as error:
                raise InputError(str(error).replace("\n", " ")) from None
        return [*rows, found.train.images, files]

    return read


def named(name, source, **options):
    def read(home):
        found = load_dataset(name, home / source, **options)
        return [found.train.labels, found.train.clean_labels, found.train.images, found.class_names]

    return read


def write_cifar(home):
    folder = home / "cifar-10-batches-py"
    folder.mkdir()
    for name in [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]:
        content = {"labels": [0, 1], "data": RNG.integers(0, 256, (2, 3072), dtype=np.uint8)}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    names = [f"class {number}" for number in range(10)]
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": names}, protocol=2))
    noisy = {key: np.arange(10) % 2 for key in ("clean_label", "worse_label", "aggre_label")}
    torch.save(noisy, home / "CIFAR-10_human.pt")


def make_selection(home):
    p4r.select("small-loss", signals=signals(), size=5).save(home / "s.parquet")


def load_selection(home):
    found = Selection.load(home / "s.parquet")
    return [found.indices, found.gains, found.manifest(), found.labels, found.confidence, found.ids, found.scores]


def labels_of():
    made = signals()
    return p4r.clean(embeddings=made.embeddings, labels=made.labels, class_names=made.class_names)


def make_labels(name):
    return lambda home: labels_of().labels.save(home / name)


def load_labels(name):
    def read(home):
        found = Labels.load(home / name)
        return [found.given_label, found.predicted_label, found.label_score, found.class_names, found.noise_rate]

    return read


def make_decisions(home):
    log = DecisionLog(home / "decisions.jsonl")
    for k in range(4):
        log.append([Decision(index=k, what="label", label="a", who="ann", when="then")])


def load_decisions(name):
    def read(home):
        rows, notes = read_decisions(home / name)
        if notes:  # a word
            raise InputError(notes[0])
        return [(each.index, each.label, each.who) for each in rows]

    return read


def write_decisions(home):
    write_csv([Decision(index=k, what="label", label="a", who="ann", when="then") for k in range(4)], home / "d.csv")


def make_cleaned(home):
    write_folder(labels_of(), home / "cleaned")


def look_at_cleaned(home):
    found = ReviewFolder(home / "cleaned")
    if "could not be opened" in found.trouble:  # said on the page
        raise InputError(found.trouble)
    likely = [found.likeliest(row) for row in range(len(found.labels))]
    copies = [found.duplicates_of(row) for row in range(len(found.labels))]
    return [found.labels.given_label, found.labels.predicted_label, found.neighbours, likely, copies, found.trouble]


def make_training(home):
    train(features(), range(20), folder=home / "t", network="mlp", network_options={"width": 4}, epochs=1, device="cpu")


def look_at_training(home):
    result = Result.load(home / "t")
    model = load_model(home / "t")
    return [result.accuracies(), result.size, model.class_names, model.probabilities(np.ones((2, 6), np.float32))]


def make_state(home):
    Checkpoints(home / "states", {"seed": 0}).save(3, {"w": torch.arange(9.0)}, {"epoch": 3})


def load_state(home):
    found = Checkpoints(home / "states", {"seed": 0}).newest(Progress(), torch.device("cpu"))
    return None if found is None else (found[0]["w"].numpy(), found[1])


def make_embeddings(home):
    dataset, _ = dataset_of(table())
    embed(dataset.train, open_encoder("tfidf", dim=2), home / "e", class_names=dataset.class_names, cache=False)


def go_on_with_embeddings(home):
    dataset, _ = dataset_of(table())
    encoder = open_encoder("tfidf", dim=2)
    return embed(dataset.train, encoder, home / "e", class_names=dataset.class_names, cache=False)


def make_run(home):
    run(tiny(methods=("small-loss",)), home / "run")


def look_at_run(home):
    story = collect(home / "run")
    return [(cell.label, cell.test_accuracy, cell.indices, cell.gains, cell.labels_changed) for cell in story.cells]


def write_yaml(home):
    text = (
        "dataset: digits\nmethods: [uniform, {method: prune4rel, options: {tau: 0.9}}]\nratios: [0.1, 0.2]\nepochs: 3\n"
    )
    (home / "c.yaml").write_text(text + "seeds: 2\ntraining: {lr: 0.1, batch: 32}\nlook: {cutout: 2}\n")


def write_weights(home):
    torch.save({"state_dict": {"a.weight": torch.ones(2, 3)}}, home / "w.pth")
    save_file({"a.weight": np.ones((2, 3), np.float32)}, home / "w.safetensors")


def load_weights(home):
    return [{k: v.numpy() for k, v in read_tensors(home / name).items()} for name in ("w.pth", "w.safetensors")]


def make_archive(home):
    shutil.copytree(Path(__file__).parents[1] / "golden" / "kept" / "archive", home / "archive")


def read_archive(home):
    found = harvest.kept(home / "archive")
    return [[(one.cell, one.seed, one.numbers) for one in found], [harvest.picks_of(p) for p in home.rglob("*.json")]]


def keep_prints(home):
    paths = sorted(each for each in home.glob("*.txt"))
    return prints_of(paths, home / "prints.npz", Progress(), keep=True)


def make_prints(home):
    for k in range(3):
        (home / f"{k}.txt").write_text(str(k))
    keep_prints(home)


SAMPLES = [
    Sample("signals in a folder", save_signals("s"), load_signals("s"), ours=True),
    Sample("signals .npz", save_signals("s.npz"), load_signals("s.npz"), ours=True),
    Sample("signals .safetensors", save_signals("s.safetensors"), load_signals("s.safetensors"), ours=True),
    Sample("signals .parquet", save_signals("s.parquet"), load_signals("s.parquet"), ours=True),
    Sample(
        "signals in parts",
        lambda home: write_signals(home / "s", [signals(), signals()]),
        lambda home: told(Signals.load(home / "s")),
        ours=True,
    ),
    Sample(
        "shards of signals",
        lambda home: write_signals(home / "s", [signals(), signals()]),
        lambda home: {name: array.read() for name, array in open_signals(home / "s").arrays.items()},
    ),
    Sample(
        "shards .npy", lambda home: np.save(home / "a.npy", np.ones((5, 2))), lambda home: open_shards(home, "a").read()
    ),
    Sample(
        "shards .parquet",
        lambda home: pq.write_table(table(), home / "a.parquet"),
        lambda home: open_shards(home, "id").read(),
    ),
    Sample("one .npy", lambda home: np.save(home / "a.npy", np.ones((5, 2))), lambda home: read_arrays(home / "a.npy")),
    Sample(
        "arrays .npz", lambda home: write_arrays(home / "a.npz", arrays()), lambda home: read_arrays(home / "a.npz")
    ),
    Sample("a data set of arrays", save_signals("s"), dataset("s")),
    Sample("a selection", make_selection, load_selection, ours=True),
    Sample("labels .parquet", make_labels("l.parquet"), load_labels("l.parquet"), ours=True),
    Sample("labels .csv", make_labels("l.csv"), load_labels("l.csv")),
    Sample("decisions", make_decisions, load_decisions("decisions.jsonl"), ours=True),
    Sample("decisions .csv", write_decisions, load_decisions("d.csv")),
    Sample("what clean wrote", make_cleaned, look_at_cleaned, ours=True),
    Sample("a training", make_training, look_at_training, ours=True),
    Sample("a state", make_state, load_state),
    Sample("embeddings", make_embeddings, go_on_with_embeddings, ours=True),
    Sample("a data set of embeddings", make_embeddings, dataset("e"), ours=True),
    Sample("a run", make_run, look_at_run, ours=True),
    Sample("a manifest", make_run, lambda home: read_manifest(home / "run")),
    Sample("a configuration", write_yaml, lambda home: Config.load(home / "c.yaml")),
    Sample("weights", write_weights, load_weights),
    Sample("an archive", make_archive, read_archive),
    Sample("fingerprints", make_prints, keep_prints),
    Sample("texts .csv", write_text_table("t.csv", ","), dataset("t.csv")),
    Sample("texts .tsv", write_text_table("t.tsv", "\t"), dataset("t.tsv")),
    Sample(
        "texts .jsonl",
        lambda home: (home / "t.jsonl").write_text("\n".join(map(json.dumps, table().to_pylist()))),
        dataset("t.jsonl"),
    ),
    Sample("texts .parquet", lambda home: pq.write_table(table(), home / "t.parquet"), dataset("t.parquet")),
    Sample("texts .arrow", write_arrow, dataset("t.arrow")),
    Sample("a saved data set", write_hf, dataset("hf")),
    Sample("a tar", write_tar, dataset("train.tar")),
    Sample("images in folders", write_folder_of_images, dataset("images")),
    Sample("pictures", write_pictures, open_pictures),
    Sample("CIFAR", write_cifar, named("cifar10n", ".", md5=False, noise="worst")),
    Sample(
        "a pickle",
        lambda home: (home / "p").write_bytes(pickle.dumps({"a": np.arange(3)})),
        lambda h: unpickle(h / "p"),
    ),
]
BY_NAME = {sample.name: sample for sample in SAMPLES}
