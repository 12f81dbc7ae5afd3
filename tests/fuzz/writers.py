"""Every command that writes: what it needs, the line, and what is read of what it wrote."""

import csv
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.fuzz.samples import load_labels, load_selection, look_at_cleaned, signals, told
from tests.pipeline.tiny import leavings

import prune4rel as p4r
from prune4rel.cleaning.write import write_folder
from prune4rel.decisions import read_decisions
from prune4rel.errors import InputError
from prune4rel.signals import Signals
from prune4rel.storage import read_array

MLP = "--network mlp --network-option width=4 --network-option depth=1 --device cpu --quiet"


@dataclass(frozen=True)
class Writer:
    """A command; `again` is what repeats it where its output is there, and `resumes` if it goes on with it."""

    line: str
    read: Callable[[Path], object]
    again: str = " --force"
    before: Callable[[Path], object] = lambda _: None

    def words(self, inputs, *, again=False):
        return (self.line + (self.again if again else "")).replace("@", f"{inputs}/").split()


def whole(name):
    """Read a file or a folder as bytes."""

    def read(home):
        if not (home / name).exists():
            raise InputError("there is none")
        files = [home / name] if (home / name).is_file() else sorted((home / name).rglob("*"))
        return [(str(path.relative_to(home)), path.read_bytes()) for path in files if path.is_file()]

    return read


def rows(name):
    def read(home):
        if not (home / name).exists():
            raise InputError("there is none")
        with (home / name).open() as file:
            return list(csv.reader(file))

    return read


def trained(name):
    def read(home):
        if not (home / name / "result.json").exists():
            raise InputError("there is none")
        p4r.load_model(home / name)
        return leavings(home / name)

    return read


def ran(home):
    if not (home / "run" / "results.csv").exists():
        raise InputError("there is none")
    from prune4rel.pipeline import collect

    collect(home / "run")
    return leavings(home / "run")


def page(home):
    text = whole("o.html")(home)[0][1]
    if not text.rstrip().endswith(b"</html>"):
        raise AssertionError("half a page")
    return "a page"


def picks(home):
    indices, gains, _, *rest = load_selection(home)  # the manifest says how long it took
    return [indices, gains, *rest]


def decided(home):
    found, notes = read_decisions(home / "cleaned" / "decisions.jsonl")
    return [(each.index, each.label) for each in found], notes


def take_cleaned(home):
    shutil.copytree(home.parent / "in" / "cleaned", home / "cleaned")


WRITERS = {
    "select": Writer("select --signals @s --size 5 --quiet -o s.parquet", picks),
    "select kcenter": Writer("select --signals @s --size 5 --method kcenter --quiet -o s.parquet", picks),
    "select, indices": Writer(
        "select --signals @s --size 5 --quiet -o s.npy", lambda home: read_array(home / "s.npy", "i")
    ),
    "noise": Writer("noise --labels @y.npy --rate 0.3 -o n.npy", lambda home: read_array(home / "n.npy", "n")),
    "clean": Writer("clean --embeddings @E.npy --labels @y.npy --quiet -o cleaned", look_at_cleaned),
    "embed": Writer(
        "embed @t.csv --encoder tfidf --encoder-option dim=2 --no-cache --quiet -o e",
        lambda home: told(Signals.load(home / "e")),
        again="",
    ),
    "export": Writer("export @cleaned --to csv --quiet -o x.csv", rows("x.csv")),
    "decisions": Writer("review cleaned --import @d.csv", decided, again="", before=take_cleaned),
    "decisions, out": Writer("review @cleaned --export d.csv", rows("d.csv")),
    "warmup": Writer(
        f"warmup --dataset arrays --data @s --warmup-epochs 1 {MLP} -o w", lambda home: told(Signals.load(home / "w"))
    ),
    "warmup .npz": Writer(
        f"warmup --dataset arrays --data @s --warmup-epochs 1 {MLP} -o w.npz",
        lambda home: told(Signals.load(home / "w.npz")),
    ),
    "train": Writer(f"train --dataset arrays --data @s --epochs 2 --save-every 0 {MLP} -o t", trained("t"), again=""),
    "run": Writer(
        f"run --dataset arrays --data @s --epochs 1 --warmup-epochs 1 --methods small-loss --ratios 0.5 {MLP} -o run",
        ran,
        again="",
    ),
    "report": Writer("report @run -o o.html", page),
}


def make_inputs(folder):
    """Make what the commands read."""
    folder.mkdir()
    made = signals()
    made.save(folder / "s")
    np.save(folder / "E.npy", made.embeddings)
    np.save(folder / "y.npy", made.labels)
    (folder / "t.csv").write_text("text,label\ngood film,yes\nbad film,no\nfine film,yes\npoor film,no\n")
    (folder / "d.csv").write_text("index,decision,label\n0,label,a\n3,label,b\n")
    found = p4r.clean(embeddings=made.embeddings, labels=made.labels, class_names=made.class_names)
    write_folder(found, folder / "cleaned")
    load_labels("labels.parquet")(folder / "cleaned")
    from tests.pipeline.tiny import tiny

    from prune4rel.pipeline import run

    run(tiny(methods=("small-loss",)), folder / "run")
    os.sync()
