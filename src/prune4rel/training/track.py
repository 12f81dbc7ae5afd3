"""Numbers of every epoch, passed on to the trackers people already use."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from prune4rel.errors import InputError, nearest


class Tracker(ABC):
    """Something that is told numbers."""

    @abstractmethod
    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Take the numbers of an epoch."""

    @abstractmethod
    def close(self) -> None:
        """Finish."""


class TensorBoard(Tracker):
    """Event files under FOLDER/tensorboard."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        del config
        module = _need("torch.utils.tensorboard", "tensorboard")
        self.writer = module.SummaryWriter(str(folder / "tensorboard"))

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Write scalars."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Flush."""
        self.writer.close()


class MLflow(Tracker):
    """A run of MLflow; where it goes is MLflow's business (MLFLOW_TRACKING_URI)."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.mlflow = _need("mlflow", "mlflow")
        self.mlflow.start_run(run_name=folder.name)
        self.mlflow.log_params({name: str(value)[:500] for name, value in config.items()})

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.mlflow.log_metrics(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.mlflow.end_run()


class WandB(Tracker):
    """A run of Weights & Biases."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        self.run = _need("wandb", "wandb").init(project="prune4rel", name=folder.name, config=dict(config))

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Log metrics."""
        self.run.log(dict(numbers), step=epoch)

    def close(self) -> None:
        """End the run."""
        self.run.finish()


TRACKERS: Mapping[str, type[Any]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}


class Trackers:
    """Several trackers as one.

    Parameters
    ----------
    names
        Which of `TRACKERS`.
    folder
        The training's folder; its name names the run.
    config
        What was trained how.
    """

    def __init__(self, names: tuple[str, ...], folder: Path, config: Mapping[str, Any]) -> None:
        for name in names:
            if name not in TRACKERS:
                raise InputError(f"unknown tracker {name!r}; {nearest(name, TRACKERS)}")
        self._all: list[Tracker] = [TRACKERS[name](folder, config) for name in names]

    def log(self, numbers: Mapping[str, float], epoch: int) -> None:
        """Tell all of them."""
        for tracker in self._all:
            tracker.log({name: value for name, value in numbers.items() if name != "epoch"}, epoch)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for tracker in self._all:
                stack.callback(tracker.close)


def _need(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"tracking with {package} needs the package, which cannot be imported here ({error}); install it with: "
            f"pip install {package} (or pip install 'prune4rel[track]' for TensorBoard)"
        ) from None
