"""Golden data: what must stay as it was at commit bfc5202, and the one way to look at it.

`test_golden` looks at picks, files, commands and options as this module does, and compares them with what is kept
beside it:

- ``picks.npz``: what every method picks, with its options;
- ``trainings.npz``: what every learner's warm-up has picked, and the labels it corrects;
- ``schemas.json``: names and types in every file that a command writes;
- ``commands.json``: commands, their options, defaults and help; methods, learners and data sets;
- ``kept/``: files of every format, to be read for ever.

The data are made once, by the commit they stand for:

    git worktree add ../golden bfc5202
    PYTHONPATH=../golden/src python -m tests.golden.make

Made again by another commit, they would prove nothing. Times, versions and paths are not kept.
"""

import ast
import csv
import io
import json
import os
import re
import shutil
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import typer
import yaml
from safetensors.numpy import load_file

import prune4rel as p4r
from prune4rel import cli

HERE = Path(__file__).parent
KEPT = HERE / "kept"
SIZE = 40
BROKEN = 4
"""Row of the image that cannot be read in the signals that are kept."""

# Commands, in this process


def command(*arguments, columns=100):
    """Return what a command prints; it has to end well."""
    printed, said = io.StringIO(), io.StringIO()
    plain = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    with (
        patch.dict(os.environ, plain),
        patch.object(sys, "argv", ["prune4rel", *map(str, arguments)]),
        redirect_stdout(printed),
        redirect_stderr(said),
    ):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                raise AssertionError(f"{arguments}: exit code {end.code}\n{said.getvalue()}") from None
    return printed.getvalue()


# Picks


@cache
def examples(name):
    """Arrays to select from; in both of them many rows, values and therefore scores are equal.

    "cliques" has every signal: near and exact duplicates in 8 dimensions, as float32. "lean" has integer vectors,
    opposite ones among them, probabilities in sixteenths, and only those signals that nothing can stand in for.
    """
    rng = np.random.default_rng(21)
    if name == "cliques":
        n, classes = 300, 4
        spread = rng.choice([0.0, 0.1], size=(n, 1))
        embeddings = (rng.normal(size=(30, 8))[rng.integers(30, size=n)] + spread * rng.normal(size=(n, 8))).astype(
            "f4"
        )
    else:
        n, classes = 200, 3
        embeddings = rng.integers(-2, 3, size=(n, 5)).astype("f4")
        embeddings[:, 0] = np.where((embeddings == 0).all(axis=1), 1, embeddings[:, 0])
    shares = rng.multinomial(16, rng.dirichlet(np.ones(classes)), size=n)
    arrays = {
        "embeddings": embeddings,
        "probabilities": shares / 16,
        "labels": rng.choice(classes, size=n, p=np.r_[0.4, np.full(classes - 1, 0.6 / (classes - 1))]),
        "forgetting": np.where(rng.random(n) < 0.05, np.inf, rng.integers(0, 6, n)),
        "scores": rng.integers(0, 32, n) / 32,
    }
    if name == "cliques":
        arrays |= {signal: rng.integers(0, 64, n) / 64 for signal in ("losses", "grad_norms", "el2n")}
        arrays["aum"] = rng.integers(-32, 33, n) / 32
        arrays["ssl_embeddings"] = rng.normal(size=(6, 4))[rng.integers(6, size=n)] + 0.2 * rng.normal(size=(n, 4))
        arrays["ids"] = np.array([f"row {row}" for row in range(n)])
    return arrays


PRESETS = ("label-aware", "coverage", "official", "paper")
PRUNE4REL = (
    *({"preset": preset, **tau} for preset in PRESETS for tau in ({}, {"tau": 0.9}, {"tau": "auto"})),
    {"gain": "paper"},
    {"similarity": "cosine"},
    {"confidence": "max-prob"},
    {"confidence": "diff-prob"},
    {"confidence": "label-prob", "preset": "paper"},
    {"tau": 0.5, "strict": True},
    {"eta": 0.25},
    {"target_degree": 6.0},
    {"max_degree": 3},
    {"initial": [7, 3, 150]},
    {"screening": "none"},
    {"screening": "projection"},
    {"preset": "paper", "tau": 0.5, "memory": "1KB"},
)
OPTIONS = {
    "prune4rel": PRUNE4REL,
    "bottom-score": ({},),
    "ccs": ({}, {"beta": 0.3, "strata": 7}),
    "craig": ({}, {"chunk": 60}),
    "d2": ({}, {"k": 3, "gamma": 0.5}, {"scale": "none"}),
    "el2n": ({},),
    "entropy": ({},),
    "facility-location": ({}, {"tau": 0.8}, {"similarity": "cosine", "target_degree": 10.0}),
    "forgetting": ({}, {"never_learnt": "lowest"}, {"same_share": True}),
    "glister": ({}, {"validation": "all"}, {"lr": 0.1, "batch": 5}),
    "gradmatch": ({}, {"ridge": 2.0}, {"batch": 5, "chunk": 60}),
    "grand": ({},),
    "herding": ({},),
    "kcenter": ({}, {"start": "first"}, {"start": "medoid"}),
    "least-confidence": ({},),
    "margin": ({},),
    "moderate": ({},),
    "small-loss": ({},),
    "ssp": ({}, {"clusters": 5}, {"direction": "prototypical"}),
    "top-score": ({},),
    "uniform": ({},),
}
SEEDED = ("ccs", "kcenter", "ssp", "uniform")


def cases():
    """Return what to ask of `select`, by name."""
    found = {}
    for method, each in OPTIONS.items():
        seeds = (0, 1) if method in SEEDED else (0,)
        for options, data, balanced, seed in product(each, ("cliques", "lean"), (False, True), seeds):
            if not (balanced and "same_share" in options):
                asked = {**options, "balanced": balanced, "seed": seed}
                found[f"{method} {data} {json.dumps(asked)}"] = (method, data, asked)
    return found


def choose(name):
    """Make the selection of a case."""
    method, data, asked = cases()[name]
    return p4r.select(method, **examples(data), **asked, size=SIZE, device="cpu")


def picks(names):
    """Return the arrays of some cases, one row each; NaN where a method has none."""
    chosen = [choose(name) for name in names]
    none = np.full(SIZE, np.nan)
    return {
        "names": np.array(names),
        "indices": np.array([each.indices for each in chosen], dtype=np.int16),
        "gains": np.array([each.gains for each in chosen]),
        "weights": np.array([none if each.weights is None else each.weights for each in chosen]),
        "confidence": np.array([none if each.confidence is None else each.confidence for each in chosen]),
        "objective": np.array([each.objective for each in chosen]),
    }


def manifest_of(method):
    """Return the schema of what a method says of its selection."""
    asked = json.dumps({**OPTIONS[method][0], "balanced": True, "seed": 0})
    return names_and_types(choose(f"{method} cliques {asked}").manifest())


# Files


def names_and_types(value, at=""):
    """Return what a JSON value holds, as {path: type}; of a list, what all its entries hold together."""
    if isinstance(value, dict):
        return {
            key: kind for name, each in value.items() for key, kind in names_and_types(each, f"{at}.{name}").items()
        }
    if isinstance(value, list):
        return {at: "list"} | {key: kind for each in value for key, kind in names_and_types(each, f"{at}[]").items()}
    numbers = isinstance(value, int | float) and not isinstance(value, bool)
    return {at: "number" if numbers else type(value).__name__}


TEXTS = {
    ".json": lambda text: names_and_types(json.loads(text)),
    ".jsonl": lambda text: names_and_types([json.loads(line) for line in text.splitlines()]),
    ".yaml": lambda text: names_and_types(yaml.safe_load(text)),
    ".csv": lambda text: dict.fromkeys(next(csv.reader(text.splitlines())), "column"),
}


def schema(path):
    """Return names and types in a file, as far as programs read it."""
    if path.suffix in TEXTS:
        return TEXTS[path.suffix](path.read_text(encoding="utf-8"))
    if path.suffix == ".parquet":
        return {field.name: str(field.type) for field in pq.read_schema(path)}
    if path.suffix == ".safetensors":
        return kind_of(load_file(path))
    if path.suffix in (".npy", ".npz"):
        arrays = np.load(path)
        return kind_of(arrays if path.suffix == ".npz" else {"array": arrays})
    return {}


def kind_of(arrays):
    """Return types and shapes."""
    return {name: f"{array.dtype} {array.shape}" for name, array in arrays.items()}


def schemas(home):
    """Return the schema of every file below a folder, by its path."""
    paths = (path for path in sorted(home.rglob("*")) if path.is_file() and path.name != ".lock")
    return {path.relative_to(home).as_posix(): schema(path) for path in paths}


DATA = ("--dataset", "arrays", "--data", "data.npz")
SMALL = ("--network", "mlp", "--network-option", "width=8", "--device", "cpu", "-q")
RUN = ("--methods", "uniform,prune4rel", "--everything", "--epochs", 6, "--warmup-epochs", 3, "--set", "batch=16")
AT_ONCE = ("--learner-option", "rate_u=1000", "--learner-option", "rate_v=1000", "--learner-option", "warmup_epochs=3")
"""So that SOP's error terms and DivideMix's two networks matter within a few epochs."""
LEARNERS = ("cross-entropy", "sop", "sop+", "elr", "elr+", "dividemix", "cores")


def make_data(home):
    """Write 96 vectors of three classes, a quarter of them with wrong labels, and 30 to test on."""
    rng = np.random.default_rng(4)
    clean = np.arange(126) % 3
    features = (3 * rng.normal(size=(3, 6))[clean] + rng.normal(size=(126, 6))).astype(np.float32)
    given = np.where(rng.random(126) < 0.25, (clean + 1) % 3, clean)
    train = {"labels": given[:96], "clean_labels": clean[:96], "features": features[:96]}
    test = {"test_labels": clean[96:], "test_features": features[96:]}
    ids = np.array([f"row {row}" for row in range(96)])
    np.savez(home / "data.npz", **train, **test, ids=ids, class_names=np.array(["ant", "bee", "cow"]))


def run_commands(home, *more):
    """Run every command that writes files in a folder with ``data.npz``; `more` goes to its run."""
    with chdir(home):
        command("run", *DATA, *RUN, *SMALL, *more, "-o", "run")
        command("report", "run", "-o", "page.html", "--png", "figures")
        extras = ("forgetting", "aum", "el2n", "grad-norms", "ssl-embeddings")
        extra = [word for name in extras for word in ("--extra", name)]
        command("warmup", *DATA, *SMALL, "--epochs", 4, "--warmup-epochs", 3, *extra, "-o", "signals")
        command("warmup", *DATA, *SMALL, "--warmup-epochs", 1, "--shard-rows", 40, "-o", "shards")
        for method in ("prune4rel", "margin", "gradmatch"):
            asked = ("--method", method, "--size", 12, "--balanced")
            command("select", "--signals", "signals", *asked, "-o", f"{method}.parquet", "-q")
        command("select", "--signals", "signals", "--ratio", 0.25, "-o", "indices.npy", "-q")
        command("train", *DATA, *SMALL, "--subset", "margin.parquet", "--epochs", 2, "-o", "model")
        np.save("labels.npy", np.arange(60) % 3)
        for suffix in ("npy", "npz", "parquet", "safetensors"):
            command("noise", "--labels", "labels.npy", "--rate", 0.4, "--seed", 3, "-o", f"noisy.{suffix}")
        command(
            "run",
            "--dataset",
            "digits",
            *SMALL,
            "--methods",
            "uniform",
            "--epochs",
            2,
            "--warmup-epochs",
            1,
            "-o",
            "digits",
        )


def trainings(home, *more):
    """Return what every learner comes to in a folder with ``data.npz``: picks, and what its model says, how surely."""
    with chdir(home):
        command("run", *DATA, *RUN, *SMALL, *AT_ONCE, *more, "--learners", ",".join(LEARNERS), "-o", "learners")
    found = {}
    for path in sorted((home / "learners").glob("*/*/*.parquet")):
        table, name = pq.read_table(path), path.parent.name
        if path.name == "selection.parquet":
            found[f"picks of {name}"] = table["index"].to_numpy()
        elif path.name == "corrected_labels.parquet":
            with np.load(home / "data.npz") as data:
                said = p4r.load_model(path.parent).probabilities(data["features"])
            found[f"labels of {name}"] = said.argmax(axis=1)
            found[f"confidence of {name}"] = said.max(axis=1)
    return found


# Commands


def commands():
    """Return the help, and the options with default and help, of every command."""
    cli.load_verbs()
    found = {}
    for name, each in typer.main.get_command(cli.app).commands.items():
        options = {
            " ".join([*option.opts, *option.secondary_opts]): {
                "default": None if option.default is None else str(option.default),
                "required": option.required,
                "help": option.help,
            }
            for option in each.params
        }
        found[name] = {"help": each.help, "options": options}
    return found


def listed(kind):
    """Return all methods, learners or data sets with their options and what else is said of them in one line."""
    lines = command(kind, columns=1000).split("\n\n")[0].splitlines()
    return {name: facts(kind, name) for name in (line.split()[0] for line in lines[1:] if line.strip())}


def facts(kind, name):
    """Return what is said of one of them: options by name, and its needs."""
    found = {}
    for line in re.split(r"\n| {3,}", command(kind, name, columns=1000)):
        word, _, rest = line.partition(": ")
        if word == "options":
            call = ast.parse(f"f({rest})", mode="eval").body
            found |= {each.arg: ast.unparse(each.value) for each in call.keywords}
        elif word in ("needs", "balanced", "seeded"):
            found[f"({word})"] = rest.strip()
    return found


def everything_said():
    """Return all of it."""
    return {"commands": commands(), **{kind: listed(kind) for kind in ("methods", "learners", "datasets")}}


# Making it


def make_kept(home):
    """Copy small files of every format out of a folder in which the commands ran."""
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    shutil.copy(home / "data.npz", KEPT)
    shutil.copytree(home / "run", KEPT / "run", ignore=shutil.ignore_patterns(".lock", "report.html"))
    for path in KEPT.glob("run/*.*"):
        path.write_text(path.read_text(encoding="utf-8").replace(f"{home}/", ""), encoding="utf-8")
    for path in sorted(home.glob("margin.*")) + sorted(home.glob("gradmatch.*")):
        shutil.copy(path, KEPT)
    make_signals_with_a_broken_image(home)
    place = KEPT / "archive" / "cifar10n-worst"
    place.mkdir(parents=True)
    for name in ("Uniform-6a22b1-0.2-sop+-seed0", "Prune4ReL-fa2cfe-0.4-selection-seed0"):
        shutil.copy(HERE.parents[1] / "results" / "cifar10n-worst" / f"{name}.json", place)


def make_signals_with_a_broken_image(home):
    """Warm up on a folder of twelve images, one of which is junk, and save the signals in every format."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(12):
        place = home / "images" / "train" / ("dark", "bright")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 100, (8, 8, 3)) + 150 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number:02}.png")
    sorted((home / "images" / "train").rglob("*.png"))[BROKEN].write_bytes(b"junk")
    asked = ("warmup", "--dataset", "folder", "--data", "images", "--option", "image_size=8", "--skip-broken")
    asked += ("--network", "small-cnn", "--network-option", "width=4", "--set", "batch=4", "--device", "cpu", "-q")
    extras = [word for name in ("forgetting", "aum", "el2n", "grad-norms") for word in ("--extra", name)]
    asked += ("--epochs", 2, "--warmup-epochs", 2, *extras)
    with chdir(home):
        command(*asked, "-o", KEPT / "signals")
        command(*asked, "--shard-rows", 5, "-o", KEPT / "shards")
    for suffix in ("npz", "safetensors", "parquet"):
        p4r.Signals.load(KEPT / "signals").save(KEPT / f"signals.{suffix}")


def write_json(name, value):
    """Write one golden value."""
    (HERE / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def make():
    """Write all golden data anew."""
    np.savez_compressed(HERE / "picks.npz", **picks(list(cases())))
    manifests = {f"select {method}": manifest_of(method) for method in OPTIONS}
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        make_data(home)
        np.savez_compressed(HERE / "trainings.npz", **trainings(home))
        shutil.rmtree(home / "learners")
        run_commands(home)
        write_json("schemas.json", schemas(home) | manifests)
        make_kept(home)
    write_json("commands.json", everything_said())


if __name__ == "__main__":
    make()
