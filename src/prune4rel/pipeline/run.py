"""`run`: from a data set to trained models, step by step, each done once."""

import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prune4rel.data import Dataset, get
from prune4rel.errors import InputError
from prune4rel.lock import only_one
from prune4rel.machine import format_seconds, resolve_device
from prune4rel.pipeline.config import Config
from prune4rel.pipeline.estimate import estimate, fit_budget
from prune4rel.pipeline.manifest import CONFIG, now, open_manifest, write_manifest
from prune4rel.pipeline.workers import AfterStep, Crew
from prune4rel.progress import PlainProgress, Progress
from prune4rel.steps import KINDS, Steps, TrainStep
from prune4rel.steps.data import look_at_files, open_dataset
from prune4rel.steps.select import names_of_code
from prune4rel.steps.step import sweep


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
        before anything heavy begins.
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
    config = _with_whole_paths(config)
    dataset = open_dataset(config)
    for learner in config.learners:
        config.plan(dataset, learner)
    device = resolve_device(config.device)
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{home}: cannot be made ({error.strerror})") from None
    with only_one(home):
        sweep(home)
        manifest = open_manifest(home, restart=restart, progress=listener)
        look_at_files(dataset, home, listener)
        asked = config.as_dict()
        if time_budget is not None:
            config = _within(config, dataset, home, manifest, time_budget, listener)
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
                for kind in steps.kinds:
                    crew.do_all(f"{kind.title}s", steps.of(kind), listener, after_step)
        records = [_in_short(step.record()) for step in steps]
        ended = {"state": "finished", "finished": now(), "inputs": steps.data, "steps": records}
        write_manifest(home, manifest | ended)
    return Run(home, config, steps)


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
    return config.changed(
        **{
            name: str(Path(path).expanduser().absolute())
            for name in ("data", "labels")
            if (path := getattr(config, name)) is not None
        }
    )


def _within(
    config: Config, dataset: Dataset, home: Path, manifest: dict[str, Any], budget: float, listener: Progress
) -> Config:
    """Shrink a run to its time budget, or take over how it was shrunk when it was begun."""
    if manifest.get("asked") == config.as_dict() and manifest.get("time_budget") == budget:
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
