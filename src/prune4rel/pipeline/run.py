"""`run`: from a data set to trained models, step by step, each done once."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

from prune4rel._version import __version__
from prune4rel.errors import InputError
from prune4rel.machine import format_seconds
from prune4rel.pipeline import work
from prune4rel.pipeline.cells import Steps, Training, lay_out
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.estimate import estimate, fit_budget
from prune4rel.pipeline.lock import only_one
from prune4rel.pipeline.steps import perform
from prune4rel.progress import PlainProgress, Progress, Tasks
from prune4rel.provenance import versions
from prune4rel.signals import Signals
from prune4rel.storage import to_json, write_whole

FORMAT = 1
CONFIG, MANIFEST = "config.yaml", "manifest.json"


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
    progress: bool | Progress = False,
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
        before anything heavy begins.
    restart
        Begin anew, whatever the folder holds.
    progress
        True for lines on standard error, or a `Progress` of your own.
    """
    home = Path(folder)
    listener = PlainProgress() if progress is True else progress or Progress()
    if home.exists() and not home.is_dir():
        raise InputError(f"{home}: is a file; a run needs a folder")
    if not home.parent.is_dir():
        raise InputError(f"{home}: the folder {home.parent} does not exist; make it first")
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{home}: cannot be made ({error.strerror})") from None
    with only_one(home):
        manifest = _open_manifest(home, restart=restart, listener=listener)
        dataset = work.open_dataset(config)
        asked = config.as_dict()
        if time_budget is not None:
            config = _within(config, home, manifest, asked, time_budget, listener)
        steps = lay_out(config, dataset, home)
        left = [step for step in steps if not step.done]
        config.save(home / CONFIG)
        manifest |= {"asked": asked, "time_budget": time_budget, "state": "running"}
        _write_manifest(home, manifest)
        if left:
            _announce(config, dataset, steps, listener)
            _do(config, steps, listener)
        _write_manifest(
            home,
            manifest
            | {
                "state": "finished",
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "device": config.device,
                "inputs": work.identify(dataset),
                "steps": [step.record() for step in steps],
            },
        )
    return Run(home, config, steps)


def _open_manifest(home: Path, *, restart: bool, listener: Progress) -> dict[str, Any]:
    """Read what is known of the folder; refuse one that is something else."""
    path = home / MANIFEST
    fresh = {"format": FORMAT, "versions": versions(), "begun": datetime.now(UTC).isoformat(timespec="seconds")}
    if not path.exists():
        strangers = [each.name for each in home.iterdir() if not each.name.startswith(".")]
        if strangers:
            raise InputError(f"{home}: holds {strangers[0]!r} but no run; choose an empty or a new folder")
        return fresh
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = int(found["format"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the manifest of a run ({error}); choose another folder") from None
    if known != FORMAT:
        other = found.get("versions", {}).get("prune4rel", "unknown")
        raise InputError(
            f"{home}: was written by version {other} of prune4rel, whose folders look different (format {known}, here "
            f"{FORMAT}); use that version, or choose another folder"
        )
    if restart:
        _clear(home)
        return fresh
    before = found.get("versions", {}).get("prune4rel")
    if before != __version__:
        listener.say(f"{home}: begun by version {before} of prune4rel, going on with {__version__}")
    return {**found, "versions": versions()}


def _clear(home: Path) -> None:
    for name in ("warmups", "selections", "trainings"):
        shutil.rmtree(home / name, ignore_errors=True)


def _write_manifest(home: Path, manifest: dict[str, Any]) -> None:
    text = to_json(manifest, indent=1) + "\n"
    write_whole(home / MANIFEST, lambda part: part.write_text(text, encoding="utf-8"), force=True)


def _within(
    config: Config, home: Path, manifest: dict[str, Any], asked: dict[str, Any], budget: float, listener: Progress
) -> Config:
    """Shrink a run to its time budget, or take over how it was shrunk when it was begun."""
    if manifest.get("asked") == json.loads(to_json(asked)) and manifest.get("time_budget") == budget:
        return Config.load(home / CONFIG)
    return fit_budget(config, budget, listener)


def _announce(config: Config, dataset: Any, steps: Steps, listener: Progress) -> None:
    waiting = [each for each in steps.trainings if not each.step.done]
    warming = [each for each in steps.warm_ups if not each.step.done]
    seconds = estimate(config, dataset, len(warming), waiting)
    about = f", about {format_seconds(seconds)}" if seconds is not None else ""
    listener.say(
        f"{len(warming)} warm-ups, {sum(not each.step.done for each in steps.choices)} selections and "
        f"{len(waiting)} trainings to do{about}"
    )


def _do(config: Config, steps: Steps, listener: Progress) -> None:
    parallel = min(config.parallel, max(len(steps.trainings), len(steps.warm_ups)))
    with _Workers(parallel) as workers:
        jobs = [
            (each.step, work.warm, (config, each.learner, each.seed, each.extras, each.step.folder))
            for each in steps.warm_ups
            if not each.step.done
        ]
        workers.perform("warm-ups", jobs, listener)
        _select(config, steps, listener)
        waiting: list[Training] = [each for each in steps.trainings if not each.step.done]
        jobs_of_training = [
            (
                each.step,
                work.fit,
                (config, each.learner, each.seed, None if each.choice is None else each.choice.path, each.step.folder),
            )
            for each in waiting
        ]
        workers.perform("trainings", jobs_of_training, listener)


def _select(config: Config, steps: Steps, listener: Progress) -> None:
    for warm_up in steps.warm_ups:
        waiting = [each for each in steps.choices if each.warm_up is warm_up and not each.step.done]
        if not waiting:
            continue
        signals = Signals.load(warm_up.signals)
        for each in waiting:
            doing = partial(work.choose, config, each.spec, each.ratio, each.seed, signals, progress=Tasks(listener))
            perform(each.step, doing, listener)


Job = tuple[Any, Callable[..., Any], tuple[Any, ...]]


class _Workers:
    """Does jobs one after another here, or several at a time in processes of their own."""

    def __init__(self, parallel: int) -> None:
        self._pool: ProcessPoolExecutor | None = None
        if parallel > 1:
            self._pool = ProcessPoolExecutor(parallel, get_context("spawn"), initializer=work.end_with_parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def perform(self, title: str, jobs: list[Job], listener: Progress) -> None:
        """Do all jobs; a failure ends the rest."""
        if self._pool is None or len(jobs) < 2:
            for step, function, arguments in jobs:
                perform(step, lambda _, f=function, a=arguments: f(*a, listener), listener)  # type: ignore[misc]
            return
        for step, _, _ in jobs:
            step.prepare(listener)
        with listener.task(title, total=len(jobs)) as advance:
            waiting: dict[Future[None], Any] = {
                self._pool.submit(_in_worker, step, function, arguments): step for step, function, arguments in jobs
            }
            while waiting:
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    step = waiting.pop(future)
                    try:
                        future.result()
                    except BrokenProcessPool:
                        raise InputError(
                            f"{step.name}: a worker process ended by force, perhaps for lack of memory; run the same "
                            "command again to go on, with fewer at a time (--parallel 1)"
                        ) from None
                    advance(1)
                    listener.status(f"{title}: {step.name}")


def _in_worker(step: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    perform(step, lambda _: function(*arguments, Progress()), Progress())
