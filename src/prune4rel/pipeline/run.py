"""Steps in order, those left undone only: in this process, or in several."""

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Self

import numpy as np

from prune4rel.atomic import make_folder
from prune4rel.data import Dataset, get
from prune4rel.encoders.embedding import estimate as estimate_embedding
from prune4rel.errors import InputError
from prune4rel.lock import join_workers, only_one
from prune4rel.machine import format_seconds, resolve_device, sharing
from prune4rel.pipeline.collect import CONFIG, now, open_manifest, write_manifest
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.estimate import estimate, fit_budget, fit_steps
from prune4rel.progress import PlainProgress, Progress
from prune4rel.steps import KINDS, Step, Steps, TrainStep
from prune4rel.steps.data import look_at_files, open_dataset, open_examples
from prune4rel.steps.embed import embed_for, in_vectors
from prune4rel.steps.select import names_of_code
from prune4rel.steps.step import sweep

AfterStep = Callable[[Step], object]


@dataclass(frozen=True)
class Run:
    """A run that is done: its folder, configuration and steps."""

    folder: Path
    config: Config
    steps: Steps


def run(
    config: Config,
    folder: str | Path,
    *,
    time_budget: float | None = None,
    restart: bool = False,
    verify: bool = False,
    progress: bool | Progress = False,
    after_step: AfterStep = lambda _: None,
) -> Run:
    """Warm up, select, train; go on at the first unfinished step of a folder that holds a part of it.

    A changed option redoes only what depends on it.

    Parameters
    ----------
    config
        What to do.
    folder
        Where everything goes.
    time_budget
        Seconds the run may take. What cannot finish in time is shrunk (fewer repeats, then fewer epochs) or refused,
        before anything heavy begins. With equal steps it says how many these are: once, and the same ones ever after.
    restart
        Begin anew, whatever the folder holds.
    verify
        Compare the contents of all files with what was written, not only of those that were touched since. Whatever is
        damaged is said, and its step done again, in any case.
    progress
        True for lines on standard error, or a `Progress` of your own.
    after_step
        Called with every step as soon as it is done, whichever process did it.

    Examples
    --------
    >>> import tempfile
    >>> tiny = Config(methods="uniform", network="mlp", network_options={"width": 8}, epochs=1, warmup_epochs=1)
    >>> with tempfile.TemporaryDirectory() as name:
    ...     done = run(tiny, Path(name) / "run")
    ...     print(*sorted(path.name for path in done.folder.iterdir() if not path.name.startswith(".")))
    config.yaml manifest.json selections trainings warmups
    """
    home = Path(folder)
    listener = PlainProgress() if progress is True else progress or Progress()
    _check_place(home)
    config = _with_whole_paths(config).changed(home=str(home.absolute()))
    examples = open_examples(config)
    encoder = config.encoder_of_run(examples.kind, config.device)
    config = config.with_learners(examples.kind if encoder is None else "features")
    if encoder is None:
        dataset = open_dataset(config)
        for learner in config.all_learners:
            config.plan(dataset, learner)
    if config.equal_steps and (config.steps is None) == (time_budget is None):
        raise InputError("equal_steps: say how many: steps, or a time budget they should fit (one of the two)", "steps")
    device = resolve_device(config.device)
    try:
        make_folder(home)
    except OSError as error:
        raise InputError(f"{home}: cannot be made ({error.strerror})") from None
    with only_one(home):
        sweep(home)
        manifest = open_manifest(home, restart=restart, progress=listener)
        if encoder is not None:
            write_manifest(home, manifest | {"state": "embedding"})
            embed_for(config, examples, encoder, listener)
            dataset = open_dataset(config)
        look_at_files(dataset, home, listener)
        asked = config.as_dict()
        if time_budget is not None:
            config = _within(config, dataset, home, manifest, time_budget, listener).changed(home=config.home)
        steps = Steps(config, dataset, home, KINDS)
        manifest |= {
            "asked": asked,
            "time_budget": time_budget,
            "resolved": None if time_budget is None else config.as_dict(),
            "state": "running",
            "device": device,
        }
        manifest["own"] = {spec.method: asdict(spec.own) for spec in config.specs if spec.own is not None}
        write_manifest(home, manifest)
        config.save(home / CONFIG)
        for step in steps:
            step.mend(listener, thorough=verify)
        if not all(step.done for step in steps):
            _announce(config, dataset, steps, listener)
            with Crew(config.parallel, home) as crew:
                for kind, some in steps.stages():
                    crew.do_all(f"{kind.title}s", some, listener, after_step)
        records = [_in_short(step.record()) for step in steps]
        ended = {"state": "finished", "finished": now(), "inputs": steps.data, "truth": steps.truth, "steps": records}
        write_manifest(home, manifest | ended)
    return Run(home, config, steps)


def describe(config: Config, folder: str | Path, *, time_budget: float | None = None) -> list[tuple[str, str]]:
    """Say what a run would do, what of it is left, and how long that takes; nothing is written.

    Returns
    -------
    Names of facts, and what they are, in words.
    """
    home, listener = Path(folder), Progress()
    config = _with_whole_paths(config).changed(home=str(home.absolute()))
    dataset = open_examples(config)
    facts = [("data", f"{dataset.name}: {len(dataset.train):,} examples, {dataset.n_classes:,} classes")]
    if (encoder := config.encoder_of_run(dataset.kind, config.device)) is not None:
        facts.append(("embedding", f"{encoder.name}, about {estimate_embedding(dataset.train, encoder)}"))
        nothing: dict[str, Any] = {"images": None, "files": None, "texts": None}
        blank = {  # zeros count as many steps as the vectors would
            title: replace(split, features=np.zeros((len(split), encoder.dim), dtype=np.float32), **nothing)
            for title, split in dataset.splits().items()
        }
        dataset = in_vectors(dataset, blank)
        config = config.changed(encoder=None, weights=None, image_size=None, encoder_options={})
    config = config.with_learners(dataset.kind)
    if time_budget is not None:
        shrink = fit_steps if config.equal_steps else fit_budget
        config = shrink(config, dataset, home, time_budget, listener)
    steps = Steps(config, dataset, home, KINDS)
    for kind in steps.kinds:
        every = steps.of(kind)
        done = sum(step.done for step in every)
        if every:
            facts.append((f"{kind.title}s", f"{len(every):,}" + (f", {done:,} of them done" if done else "")))
    seconds = estimate(config, dataset, steps.left(), least=0)
    return [*facts, ("time", "nothing is left to do" if seconds is None else f"about {format_seconds(seconds)}")]


def _in_short(record: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what a step's record says of its work."""
    return None if record is None else {name: value for name, value in record.items() if name not in ("files", "used")}


def _check_place(home: Path) -> None:
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise InputError(
            "a run starts its own processes (--parallel); start `prune4rel warmup` and `train` under torchrun instead"
        )
    if home.exists() and not home.is_dir():
        raise InputError(f"{home}: is a file; a run needs a folder")
    if not home.parent.is_dir():
        raise InputError(f"{home}: the folder {home.parent} does not exist; make it first")


def _with_whole_paths(config: Config) -> Config:
    """Name files by their whole paths, so that what is saved can be used from anywhere."""
    given = {name: getattr(config, name) for name in ("data", "labels", "decisions", "weights")}
    whole = {name: str(Path(path).expanduser().absolute()) for name, path in given.items() if path is not None}
    family, colon, file = (config.encoder or "").partition(":")
    if colon and family in ("onnx", "run"):
        whole["encoder"] = f"{family}:{Path(file).expanduser().absolute()}"
    return config.changed(**whole)


def _within(
    config: Config, dataset: Dataset, home: Path, manifest: dict[str, Any], budget: float, listener: Progress
) -> Config:
    """Shrink a run to its time budget, or take over how it was shrunk when it was begun."""
    same = manifest.get("time_budget") == budget
    if config.equal_steps:
        steps = (manifest.get("resolved") or {}).get("steps") if same else None
        return fit_steps(config, dataset, home, budget, listener) if steps is None else config.changed(steps=steps)
    if same and manifest.get("asked") == config.as_dict():
        return Config.from_dict(manifest["resolved"], f"{home}: ", code=names_of_code(config.methods))
    return fit_budget(config, dataset, home, budget, listener)


def _announce(config: Config, dataset: Dataset, steps: Steps, listener: Progress) -> None:
    left = steps.left()
    seconds = estimate(config, dataset, left)
    about = f", about {format_seconds(seconds)}" if seconds is not None else ""
    if dataset.test is None and any(isinstance(step, TrainStep) for step in left):
        hint = "; --option test_share=0.2 would hold a fifth out" if "test_share" in get(config.dataset).options else ""
        listener.say(f"{config.dataset} has no test split, so that no accuracy will be known{hint}")
    counts = Counter(step.title for step in left)
    words = [f"{count} {title}{'' if count == 1 else 's'}" for title, count in counts.items()]
    listener.say(f"{' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))} to do{about}")


STATUS_EVERY = 1.0
"""Seconds between two messages of a worker on how its step stands."""


class Crew:
    """Does steps one after another here, or several at a time in processes that are kept for the next step.

    Parameters
    ----------
    size
        How many at a time; 1 for here.
    home
        The run folder, which no other run can take before the workers of this one have ended.
    """

    def __init__(self, size: int, home: Path) -> None:
        self.size, self.home = size, home
        self._workers: dict[Connection, SpawnProcess] = {}

    def do_all(self, title: str, steps: Iterable[Step], progress: Progress, after: AfterStep = lambda _: None) -> None:
        """Do all of the steps that are not done; a failure ends the rest.

        Parameters
        ----------
        title
            What they are, for people.
        steps
            In the order in which they are begun; they are sent to other processes as they are.
        progress
            Is told how many are done, and how those at work stand; of steps done here all that they tell.
        after
            Called here with every step as soon as it is done.
        """
        waiting = deque(step for step in steps if not step.done)
        at_a_time = min(self.size, len(waiting))
        if at_a_time < 2 or not all(step.spreads for step in waiting):
            for step in waiting:
                step.do(progress)
                after(step)
            return
        for step in waiting:
            step.mend_used(progress)
            step.prepare(progress)
        at_work = dict[Connection, Step]()
        with progress.task(title, total=len(waiting)) as advance:
            while waiting or at_work:
                while waiting and len(at_work) < self.size:
                    line = next((each for each in self._workers if each not in at_work), None) or self._start()
                    at_work[line] = waiting.popleft()
                    with suppress(ConnectionError):  # it has died, which is heard below
                        line.send((at_work[line], at_a_time))
                heard = wait(list(at_work))
                for line in [each for each in at_work if each in heard]:
                    status = _hear(line, title)
                    if status is not None:
                        progress.status(f"{at_work[line].name}: {status}")
                        continue
                    advance(1)
                    after(at_work.pop(line))

    def _start(self) -> Connection:
        """Start a worker; its end is heard, however it ends, because only the worker holds the other end."""
        spawn = get_context("spawn")
        line, theirs = spawn.Pipe()
        worker = spawn.Process(target=_work, args=(self.home, theirs))
        with _deaf_to_interrupts():  # a worker that is still importing would die of one with a traceback
            worker.start()
        theirs.close()
        self._workers[line] = worker
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the workers go; after a failure at once, whatever they are at."""
        for line, worker in self._workers.items():
            line.close()
            if kind is not None:
                worker.kill()
        for worker in self._workers.values():
            worker.join()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Have processes that are started in a block pass over Ctrl+C from their first moment on; here it waits."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would let signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProgress(Progress):
    """Tells the process that started this worker how its step stands, now and then."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._next = 0.0

    def status(self, message: str) -> None:
        """Send the message, unless there was one a moment ago."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + STATUS_EVERY
            self._line.send(message)


def _hear(line: Connection, title: str) -> str | None:
    """Return how the step of a worker stands, or None once it is done; raise what it failed by."""
    try:
        told: str | Exception | None = line.recv()
    except (EOFError, ConnectionError):
        raise InputError(
            f"{title}: a worker process was ended by force, perhaps for lack of memory; run the same command again "
            "to go on, if need be with fewer at a time (--parallel 1)"
        ) from None
    if isinstance(told, Exception):
        raise told
    return told


def _work(home: Path, line: Connection) -> None:
    enter(home)
    while True:
        try:
            step, at_a_time = line.recv()
        except EOFError:
            return
        with sharing(at_a_time):
            failure = _failure_of(step, WorkerProgress(line))
        line.send(failure)
        _let_go()


def _failure_of(step: Step, progress: Progress) -> Exception | None:
    try:
        step.do(progress)
    except InputError as error:
        return error
    except Exception as error:  # noqa: BLE001 - raised again by the one who hears of it
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return error
    return None


def _let_go() -> None:
    """Give back what a step took of a GPU: the next step of this worker may need less, and others more."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def enter(home: Path) -> None:
    """Begin a worker process: it ends when the process that started it does, even by kill -9."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it is told, too, and ends it
    parent = parent_process()
    if parent is None:
        raise AssertionError("only a worker has to follow another process")

    def follow() -> None:
        parent.join()
        os._exit(1)

    join_workers(home)
    if not parent.is_alive():
        os._exit(1)
    threading.Thread(target=follow, daemon=True).start()
