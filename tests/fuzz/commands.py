"""Rubbish command lines: lines that work, with flags and values put in, left out, and replaced by nonsense."""

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import typer
from tests.fuzz.samples import make_run, signals, table, write_folder_of_images

import prune4rel as p4r
from prune4rel.cleaning.write import write_folder

NUMBERS = [
    "-1", "0", "1", "2", "1e3", "nan", "inf", "-inf", "1e308", "1e-320", "-0.0", "2147483648", "9223372036854775808",
    "1e999", str(10**30), "9" * 5000, "", " 3", "0x10", "\uff11\uff12", "true", "0.5", "1.5", "1,2",
]  # fmt: skip
WORDS = [
    "", "x", "nan", "auto", "none", "evil:f", "evil", "os.path:join", "os:system", "cuda:99", "cuda", "cpu", "\udcff",
    "a" * 3000, "../..", "=1+1", "\x1b[2J", "\n", "*", "%s{}", "sop+", "uniform", "prune4rel/official",
    "uniform,uniform", "prune4rel,evil:f", "0.1,0.2", "0.1,nan", "1e-9", "[" * 3000, "{}", "null", "a=b",
    "http://127.0.0.1:9/x", "timm/../x", "s3://nowhere/x", "file:///etc/passwd", "hf://x", "csv", "folder",
    "cleanlab", "tfidf", "weak", "aum", "tensorboard",
]  # fmt: skip
READ = [
    "E.npy", "P.npy", "y.npy", "s", "s.npz", "s.parquet", "sel.parquet", "t.csv", "t.parquet", "images", "cleaned",
    "cleaned/labels.parquet", "cleaned/signals", "run", "d.jsonl", "c.yaml", "names.txt", "empty", "junk.npy",
    "none.npy", "pipe", "circle", ".", "", "/dev/zero", "/dev/null", "/proc/self/mem", "in:put.parquet",
    "caf\udce9.npy", "a" * 300, "E.npy/x", "no/such/file.npy", "/home/../etc/passwd", "~", "one.npy", "text.npy",
    "big.npy", "zero.npy",
]  # fmt: skip
WRITTEN = [
    "o", "o.npy", "o.npz", "o.parquet", "o.csv", "o.html", "o.safetensors", "o.json", "cuda:99", "os.path:join", "",
    ".", "E.npy", "s", "run", "cleaned", "pipe", "/dev/full", "/proc/x", "no/such/o.npy", "E.npy/o", "a" * 300,
    "\udcff.npy", "o\n.parquet", "y.npy", "..", "circle", "full/o.npy",
]  # fmt: skip
OPTIONS = [
    "noise", "test_share", "image_size", "tau", "gain", "lr", "batch", "width", "epochs", "ema", "scheme", "clip",
    "weight_decay", "dim", "k", "power", "temperature", "rate", "momentum", "policy", "cutout", "padding", "mirror",
    "warmup", "warm_up", "beta", "lambda_u", "depth", "seed", "__class__", "", "max_features", "split", "label", "of",
    "bins", "hidden", "dropout", "layers", "alpha", "eta", "strategy", "partitions", "initial", "milestones", "views",
]  # fmt: skip
VALUES = [*NUMBERS, *WORDS, "[1,2]", "[]", "{}", '{"a":1}', "null", "[null]", "-1e-300", "1e18", "[1e999]"]

LINES = [
    "select --embeddings E.npy --probabilities P.npy --labels y.npy --size 5 -o o.parquet",
    "select --signals s --ratio 0.2 --method small-loss -o o.npy --balanced",
    "select --signals s.npz --ratio 0.2 --dry-run",
    "select t.parquet --ratio 0.5 --method uniform -o o.npy",
    "select --signals s --size 4 --method kcenter -o o.parquet --option partitions=2",
    "clean --embeddings E.npy --labels y.npy -o o",
    "clean t.csv --encoder tfidf --encoder-option dim=2 --no-cache -o o",
    "clean --embeddings E.npy --labels y.npy --dry-run",
    "clean --embeddings E.npy --votes t.csv -o o",
    "clean --embeddings E.npy --labels y.npy --ids i.npy --decisions d.jsonl -o o",
    "clean t.parquet --embedding-column embedding --label-column label -o o",
    "clean images --by training --epochs 1 --device cpu --skip-broken -o o",
    "embed t.csv --encoder tfidf --encoder-option dim=2 --no-cache -o o",
    "embed images --dry-run",
    "export cleaned --to csv -o o.csv",
    "export cleaned --to cleanlab -o o",
    "noise --labels y.npy --rate 0.3 -o o.npy",
    "plan --n 1000000 --dim 512",
    "report run -o o.html",
    "reproduce table1 --dry-run",
    "reproduce --list",
    "review cleaned --export o.csv",
    "review cleaned --import d.jsonl",
    "datasets digits",
    "datasets folder --data images",
    "methods prune4rel",
    "learners sop",
    "encoders",
    "doctor",
    "demo --seeds 0 -o o",
    "run --dataset digits --network mlp --epochs 1 --warmup-epochs 1 --methods uniform --ratios 0.1 -o o",
    "run --config c.yaml -o o",
    "train --dataset arrays --data s --network mlp --epochs 1 -o o",
    "train --dataset digits --network mlp --network-option width=4 --epochs 1 --subset i.npy -o o",
    "warmup --dataset digits --network mlp --network-option width=4 --warmup-epochs 1 -o o",
]


def make_files(home):
    """Make everything that lines name, in the current folder."""
    here = Path.cwd()
    os.chdir(home)
    try:
        made = signals()
        for name, array in (("E", made.embeddings), ("P", made.probabilities), ("y", made.labels)):
            np.save(f"{name}.npy", array)
        for name in ("s", "s.npz", "s.parquet"):
            made.save(name)
        p4r.select("small-loss", signals=made, size=5).save("sel.parquet")
        np.save("i.npy", np.arange(20))
        np.save("one.npy", np.ones(1))
        np.save("text.npy", np.array(["a", "b"] * 6))
        np.save("zero.npy", np.zeros((12, 4)))
        with Path("big.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 512)})
        Path("t.csv").write_text("text,label\ngood film,yes\nbad film,no\nfine film,yes\npoor film,no\n")
        pq.write_table(table(), "t.parquet")
        write_folder_of_images(Path())
        write_folder(
            p4r.clean(embeddings=made.embeddings, labels=made.labels, class_names=made.class_names), Path("cleaned")
        )
        make_run(Path())
        Path("d.jsonl").write_text("")
        Path("c.yaml").write_text("dataset: digits\nmethods: uniform\nratios: 0.1\nepochs: 1\nnetwork: mlp\n")
        Path("names.txt").write_text("a\nb\nc\n")
        Path("empty").mkdir()
        Path("junk.npy").write_bytes(b"\x93NUMPY junk")
        Path("none.npy").write_bytes(b"")
        os.mkfifo("pipe")
        Path("circle").symlink_to("circle")
        Path("full").mkdir()
        for name in ("in:put.parquet", "caf\udce9.npy"):
            pq.write_table(table(), "t.parquet") if name.endswith("parquet") else np.save(name, made.labels)
    finally:
        os.chdir(here)


def verbs():
    """Return every command's flags: names, whether it is a switch, the Python type of its value."""
    from prune4rel import cli

    cli.load_verbs()
    found = {}
    for name, command in typer.main.get_command(cli.app).commands.items():
        found[name] = [
            (each.opts + each.secondary_opts, getattr(each, "is_flag", False), str(each.type_descriptor.annotation))
            for each in command.params
            if each.opts[0].startswith("-")
        ]
    return found


OUT = ("--output", "-o", "--export", "--png", "--pdf", "--picture", "--archive", "--work-dir")
PATHS = ("--data", "--labels", "--embeddings", "--probabilities", "--signals", "--weights")


def value(random, flag, kind):
    if random.random() < 0.07:
        pool = VALUES + READ
    elif flag in OUT:
        pool = WRITTEN
    elif "Path" in kind or flag in PATHS:
        pool = READ
    elif flag == "--signal":
        pool = [f"{name}={random.choice(READ)}" for name in ("losses", "aum", "ids", "x", "known", "verified", "")]
    elif "int" in kind or "float" in kind:
        pool = NUMBERS
    elif "list" in kind and random.random() < 0.9:
        pool = [f"{random.choice(OPTIONS)}={random.choice(VALUES)}"]
    else:
        pool = WORDS
    return random.choice(pool)


def line(random, flags):
    """Return a line that nobody should write, or one that works."""
    words = random.choice(LINES).split()
    if random.random() < 0.2:
        return words
    known = flags[words[0]]
    kinds = {name: (switch, kind) for names, switch, kind in known for name in names}
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        act = random.random()
        spots = [k for k in range(1, len(words)) if words[k - 1] in kinds and not kinds[words[k - 1]][0]]
        if act < 0.35 and spots:
            spot = random.choice(spots)
            words[spot] = value(random, words[spot - 1], kinds[words[spot - 1]][1])
        elif act < 0.85 and known:
            names, switch, kind = random.choice(known)
            flag = random.choice(names)
            if flag in ("--engine", "--ray-address", "--parallel"):  # takes seconds to start
                continue
            words += [flag] if switch else [flag, value(random, flag, kind)]
        elif act < 0.93 and len(words) > 1:
            del words[random.randrange(1, len(words))]
        else:
            words.insert(random.randrange(1, len(words) + 1), random.choice(VALUES + READ))
    return [
        word.encode("utf-8", "surrogatepass").replace(b"\0", b"").decode("utf-8", "surrogateescape") for word in words
    ]
