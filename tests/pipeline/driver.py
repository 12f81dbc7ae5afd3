"""Runs tiny runs in forked children and kills them; a script, so that importing takes its time only once.

`python driver.py FOLDER KILLS SEED NAME` does so with one of `CONFIGS`. It
leaves FOLDER/whole, a run that nobody disturbed, and FOLDER/killed0, ..., runs
that were killed again and again until they were finished.
"""

import os
import random
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import torch
from tests.pipeline.tiny import tiny

from prune4rel import training
from prune4rel.cli.run import finish
from prune4rel.methods.prune4rel import compile_loops
from prune4rel.pipeline import run
from prune4rel.progress import Progress
from prune4rel.steps import KINDS, Steps
from prune4rel.steps.data import open_dataset

EQUAL = ("uniform", "prune4rel:0.3", "everything:1:trust")
CONFIGS = {
    "epochs": tiny(title="tiny", epochs=6),
    "equal-steps": tiny(title="tiny", epochs=None, equal_steps=True, steps=70, methods=EQUAL),
}


def go(home, config):
    """Run to the end in a process of its own; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        torch.set_num_threads(1)
        run(config, home)
        (home / ".selected").touch()
        finish(home, Progress(), quiet=True)
        code = 0
    except BaseException:  # noqa: BLE001 - a child must not go on as if it were the parent
        traceback.print_exc()
    os._exit(code)


def ended(child, seconds):
    """Wait for a child for some time; return whether it ended by itself, and well."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if status:
                raise SystemExit(f"a run failed with status {status}")
            return True
        time.sleep(0.001)
    return False


def main(folder, kills, seed, config):
    # checkpoints after every step: there shall be many states to be killed in
    training.train = partial(training.train, save_every=0.0)
    training.warm_up = partial(training.warm_up, save_every=0.0)
    Steps(config, open_dataset(config), folder, KINDS)  # imports the rest
    compile_loops(Progress())
    if not ended(go(folder / "compiled", config), 300):  # compiles what is compiled once and for all
        raise SystemExit("the first run did not end")
    begin = time.time()
    if not ended(go(folder / "whole", config), 300):
        raise SystemExit("the undisturbed run did not end")
    working = (folder / "whole" / ".selected").stat().st_mtime - begin
    reporting = time.time() - begin - working
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    number = killed = 0
    while True:
        home = folder / f"killed{number}"
        child = go(home, config)
        resuming = chance.random() < 0.8
        delay = chance.random() * working if resuming else working + chance.random() * reporting
        if ended(child, delay if killed < kills else 300):
            number += 1
            if killed >= kills:
                break
            continue
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
    sys.stdout.write(f"{killed} kills, {number} runs, {working:.2f} s and {reporting:.2f} s\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), CONFIGS[sys.argv[4]])
