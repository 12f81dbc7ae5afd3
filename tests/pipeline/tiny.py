"""A run of a second, and what it left behind."""

import csv
import hashlib
import json

from prune4rel.pipeline import Config
from prune4rel.progress import Progress
from prune4rel.selection import Selection

TINY = {
    "methods": ("uniform", "prune4rel"),
    "network": "mlp",
    "network_options": {"width": 8},
    "epochs": 2,
    "warmup_epochs": 1,
    "device": "cpu",
}
BYTES = ("metrics.jsonl", "model.safetensors", "model.json", "corrected_labels.parquet")


def tiny(**changes):
    return Config(**{**TINY, **changes})


class Ear(Progress):
    """Remembers what was said, and how things stood."""

    def __init__(self):
        self.said, self.stood = [], []

    def say(self, message):
        self.said.append(message)

    def status(self, message):
        self.stood.append(message)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def leavings(home):
    """Everything a run found out, without the times it took."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.name in BYTES or path.suffix == ".npy":
            found[name] = digest(path)
        elif path.name == "result.json":
            known = json.loads(path.read_text())
            found[name] = {key: value for key, value in known.items() if key not in ("seconds", "files", "check")}
        elif path.name == "selection.parquet":
            chosen = Selection.load(path)
            found[name] = (chosen.indices.tolist(), chosen.gains.tolist(), str(chosen.objective))
        elif path.name == "results.csv":
            rows = csv.DictReader(path.read_text().splitlines())
            found[name] = [{key: value for key, value in row.items() if "seconds" not in key} for row in rows]
    return found


def redone(before, home):
    """Names of the step folders whose mark is another one than before."""
    return {name for name, time in marks(home).items() if before.get(name) != time}


def marks(home):
    """How long each step took, to the last digit: another number once it is done again."""
    return {
        str(path.parent.relative_to(home)): json.loads(path.read_text())["seconds"]
        for path in home.glob("*/*/step.json")
    }
