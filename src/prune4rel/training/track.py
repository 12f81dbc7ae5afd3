"""Numbers of every epoch, passed on to the trackers people already use."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from prune4rel.errors import InputError, nearest
from prune4rel.reading import read_text
from prune4rel.storage import write_whole


class Tracker(ABC):
    """Something that is told numbers."""

    @abstractmethod
    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Take the numbers of an epoch."""

    @abstractmethod
    def close(self) -> None:
        """Finish."""


TENSORBOARD = "tensorboard"


class TensorBoard(Tracker):
    """Event files under FOLDER/tensorboard."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        del config
        module = _need("torch.utils.tensorboard", "tensorboard")
        self.writer = module.SummaryWriter(str(folder / TENSORBOARD))

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Write scalars."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Flush."""
        self.writer.close()


class MLflow(Tracker):
    """A run of MLflow, the same one after a restart; where it goes is MLflow's business (MLFLOW_TRACKING_URI)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.mlflow = _need("mlflow", "mlflow")
        before = _read_name(folder / MLFLOW_RUN)
        if before is not None:
            self.mlflow.start_run(run_id=before)
            return
        run = self.mlflow.start_run(run_name=folder.name)
        _write_name(folder / MLFLOW_RUN, run.info.run_id)
        self.mlflow.log_params({name: str(value)[:500] for name, value in config.items()})

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.mlflow.log_metrics(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.mlflow.end_run()


class WandB(Tracker):
    """A run of Weights & Biases, the same one after a restart."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        wandb = _need("wandb", "wandb")
        name = _read_name(folder / WANDB_RUN) or uuid4().hex[:12]
        _write_name(folder / WANDB_RUN, name)
        self.run = wandb.init(
            project="prune4rel", name=folder.name, config=dict(config), id=name, resume="allow", dir=str(folder)
        )

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.run.log(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.run.finish()


MLFLOW_RUN, WANDB_RUN = "mlflow_run.txt", "wandb_run.txt"
RUN_NAMES = (MLFLOW_RUN, WANDB_RUN)
"""Files that keep the names of runs, for a training that is gone on with."""


def _read_name(path: Path) -> str | None:
    return read_text(path, "name of a run", 4096).strip() if path.exists() else None


def _write_name(path: Path, name: str) -> None:
    write_whole(path, lambda part: part.write_text(name + "\n", encoding="utf-8"), force=True)


TRACKERS: Mapping[str, type[Any]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}


class Trackers:
    """Several trackers as one. One that cannot begin is an error; one that fails later must not end a training.

    Parameters
    ----------
    names
        Which of `TRACKERS`.
    folder
        The training's folder; its name names the run.
    config
        What was trained how.
    say
        Told which tracker failed, and why.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        folder: Path,
        config: Mapping[str, Any],
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        for name in names:
            if name not in TRACKERS:
                raise InputError(f"unknown tracker {name!r}; {nearest(name, TRACKERS)}", "track")
        self._say = say
        self._all: dict[str, Tracker] = {}
        try:
            for name in dict.fromkeys(names):
                self._all[name] = TRACKERS[name](folder, config)
        except Exception as error:
            self.close()
            if isinstance(error, InputError):
                raise
            raise InputError(f"tracking with {name} cannot begin: {_reason(error)}", "track") from error

    def log(self, numbers: Mapping[str, float | None], epoch: int) -> None:
        """Tell all of them what is known."""
        told = {name: value for name, value in numbers.items() if name != "epoch" and value is not None}
        for name, tracker in list(self._all.items()):
            if not self._try(name, "failed; going on without it", partial(tracker.log, told, epoch)):
                del self._all[name]

    def close(self) -> None:
        """Finish all of them."""
        for name, tracker in self._all.items():
            self._try(name, "could not be finished", tracker.close)
        self._all.clear()

    def _try(self, name: str, trouble: str, act: Callable[[], object]) -> bool:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - a server that is down may raise anything
            self._say(f"note: tracking with {name} {trouble} ({_reason(error)})")
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]


def _need(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"tracking with {package} needs the package, which cannot be imported here ({error}); install it with: "
            f"pip install {package} (or pip install 'prune4rel[track]' for all trackers)"
        ) from None
