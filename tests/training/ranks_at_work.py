"""What each of two processes does for `test_distributed`: ``python -m tests.training.ranks_at_work FOLDER``."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import save_file
from tests.training.small import digits, features, look_at_all, nothing
from torch import nn

from prune4rel.data import load_dataset
from prune4rel.errors import InputError
from prune4rel.learners.simclr import SimCLR
from prune4rel.training import make_plan, train, warm_up
from prune4rel.training.distributed import join
from prune4rel.training.train import Epochs
from prune4rel.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
SUBSET = np.arange(67)[::-1].copy()
MLP = {"network": "mlp", "network_options": {"width": 8, "depth": 1}}
CNN = {"network": "small-cnn", "network_options": {"width": 4}}
CASES = {
    "cross-entropy": ("cross-entropy", MLP),
    "sop": ("sop", MLP),
    "sop+": ("sop+", MLP),
    "elr": ("elr", MLP),
    "elr+": ("elr+", MLP),
    "dividemix": ("dividemix", MLP),
    "cores": ("cores", MLP),
    "trust": ("trust", MLP),
    "trust by prune4rel": ("trust", MLP | {"learner_options": {"trust_by": "prune4rel"}}),
    "simclr": (SimCLR, MLP),
    "sop+ with batch normalisation": ("sop+", CNN),
    "dividemix with batch normalisation": ("dividemix", CNN | {"clip": 1.0, "ema": 0.9}),
    "fewer examples than ranks": ("cross-entropy", CNN | {"batch": 1, "lr": 1e-3}),
}
EPOCHS = 20
FAILURE = "the second process cannot go on"
INTERRUPTED_AFTER = 6
WARM_UP = {"device": "cpu", "epochs": 2, "warmup_epochs": 2, "batch": 15, "extras": ["aum", "forgetting"]}
SIGNALS = ("probabilities", "embeddings", "losses", "aum", "forgetting")


class StoppedError(Exception):
    """A training was interrupted."""


def trainer_of(name, ranks, device="cpu"):
    learner, options = CASES[name]
    kind = None if isinstance(learner, str) else learner
    # an odd batch: the ranks' parts differ
    options = {"epochs": 4, "batch": 15, "warmup_epochs": 1, "precision": "float32", "deterministic": True} | options
    plan = make_plan(digits(), learner if kind is None else "cross-entropy", **options)
    keep = ("forgetting", "aum") if name == "sop" else ()
    rows = SUBSET[:3] if options["batch"] == 1 else SUBSET
    return Trainer(digits(), rows, plan, device=device, ranks=ranks, keep=keep, kind=kind)


def follow(name, ranks, device="cpu"):
    """Train a case; return its curve, and all there is to know of it afterwards."""
    torch.manual_seed(ranks.rank)  # what the process did before must not matter
    trainer = trainer_of(name, ranks, device)
    with trainer.settings():
        curve = [trainer.training.run_epoch(nothing) for _ in range(trainer.plan.hyperparameters.epochs)]
    tensors, facts = trainer.training.state()
    tensors["said of the test split"] = trainer.predict(digits().test)
    if name != "simclr":
        logits, embeddings = look_at_all(trainer, "strong", seed=3)
        tensors |= {"seen": logits, "embeddings": embeddings}
    return curve, facts, tensors


def follow_all(ranks, device):
    """Train all cases; return what there is to tell of them, and all tensors."""
    told, tensors = {}, {}
    for name in CASES:
        curve, facts, state = follow(name, ranks, device)
        told[name] = {"curve": curve, "facts": facts}
        tensors |= {f"{name}/{key}": values for key, values in state.items()}
    return told, tensors


def leave(folder, ranks, told, tensors):
    """Write down what this process has found, for the tests to read."""
    on_cpu = {name: values.cpu().contiguous() for name, values in tensors.items()}
    save_file(on_cpu, folder / f"rank{ranks.rank}.tensors")
    (folder / f"rank{ranks.rank}.json").write_text(json.dumps(told))


@contextmanager
def interruption(calls):
    """Stop a training after it could have been saved so many times."""
    save, count = Epochs._save, 0

    def save_and_stop(self, **options):
        nonlocal count
        save(self, **options)
        count += 1
        if count == calls:
            raise StoppedError

    with patch.object(Epochs, "_save", save_and_stop):
        yield


def run(folder, ranks=None, *, stop_after=None, **more):
    """Train a learner with a table of every example, into a folder; go on with what is there."""
    options = {"folder": folder, "learner": "sop+", "device": "cpu", "epochs": EPOCHS, "batch": 15, "save_every": 0}
    with nullcontext() if stop_after is None else interruption(stop_after):
        return train(load_dataset("digits"), SUBSET, ranks=ranks, **options | MLP | more)


def diverge(folder, ranks):
    """Return what is said of a training whose rate is far too high."""
    try:
        run(folder, ranks, lr=1e38, momentum=0.0)
    except InputError as error:
        return str(error)
    return "nothing"


def tools(ranks):
    """What the methods of the ranks give, by name."""
    own = torch.arange(6.0).reshape(3, 2)[: ranks.rank + 1] + 10 * ranks.rank
    shares = torch.tensor([2.0, 3.0], dtype=torch.float64)[ranks.rank].clone().requires_grad_()
    total = ranks.sum(shares)
    (ranks.once(total**3) + shares**2).backward()
    gradients = [
        torch.full((2, 3), 1.0 + ranks.rank),
        torch.full((1,), 10.0 ** (ranks.rank + 1), dtype=torch.float64),
        torch.full((1, 2, 2, 2), 5.0).to(memory_format=torch.channels_last),
    ]
    with patch("prune4rel.training.distributed.BUCKET_BYTES", 16):
        ranks.reduce_(gradients)
    ranks.check_alike("the same", "thing")
    return {
        "sum": total.detach(),
        "gradient": shares.grad,
        "rows": ranks.gather(own),
        "flags": ranks.gather(own[:, 0] > 1),
        "nothing": ranks.gather(own[:0]),
        "from one only": ranks.gather(own[: 2 * ranks.rank]),
        "mine": ranks.mine(torch.arange(5)),
        "matrix": gradients[0],
        "double": gradients[1],
        "image": gradients[2].contiguous(),
    }


def refusals(ranks):
    found = []
    for work in (
        lambda: ranks.check_alike(f"rank {ranks.rank}", "taste"),
        lambda: ranks.prepare(nn.Linear(2 + ranks.rank, 1)),
    ):
        try:
            work()
        except InputError as error:
            found.append(str(error))
    return found


def work(folder):
    with join("cpu") as (ranks, device):
        told = {"device": device, "refused": refusals(ranks), "threads": os.environ["PRUNE4REL_THREADS"]}
        curves, tensors = follow_all(ranks, device)
        told |= curves
        tensors |= {f"tools/{name}": values for name, values in tools(ranks).items()}
        for name in ("begun by one", "undisturbed"):
            run(folder / name, ranks)
        told["diverged"] = diverge(folder / "diverging", ranks)
        signals = warm_up(features(), ranks=ranks, **WARM_UP)
        tensors |= {f"signals/{name}": torch.tensor(getattr(signals, name)) for name in SIGNALS}
        leave(folder, ranks, told, tensors)
        if ranks.rank == 1:
            raise InputError(FAILURE)
        ranks.barrier()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def environment(**more):
    """Return what processes get that may only talk to each other on this machine."""
    inherited = {name: value for name, value in os.environ.items() if name != "PRUNE4REL_THREADS"}
    return inherited | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "MASTER_ADDR": "127.0.0.1",
        **more,
    }


def run_two(*arguments, module="ranks_at_work"):
    """Run a module in two processes that are to find each other; return their exit codes and what they said."""
    port = str(free_port())
    both = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", f"tests.training.{module}", *arguments],
            cwd=ROOT,
            env=environment(RANK=str(rank), WORLD_SIZE="2", MASTER_PORT=port),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [one.communicate(timeout=200)[1] for one in both]
    return [one.returncode for one in both], said


if __name__ == "__main__":
    try:
        work(Path(sys.argv[1]))
    except InputError as error:
        sys.exit(str(error))
