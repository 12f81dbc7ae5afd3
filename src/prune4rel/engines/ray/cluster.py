"""A Ray cluster: started here or joined, and small tasks run on it, so many at a time."""

import math
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from prune4rel.engines.ray.health import check_answers
from prune4rel.engines.ray.tiles import one_thread
from prune4rel.errors import InputError
from prune4rel.machine import WORTH_A_GPU, threads

RETRIES = 8
"""How often Ray starts a task again whose worker or node died."""

AHEAD = 2
"""Tasks submitted for every one that can run, so that no worker waits for the driver."""

LOOK_AROUND = 1.0
"""Seconds after which it is looked again how many tasks can run, for nodes come and go."""

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Switched off, Ray binds to 127.0.0.1 alone, as it does by itself on machines it never makes clusters of."""

AUTH = "RAY_AUTH_MODE"
"""Says whether to show the token of ``~/.ray``; Ray joins clusters without it unless told."""

Tag = TypeVar("Tag")


class Task(NamedTuple):
    """One task: what to call, with what. Object references among the arguments become their values."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Measured(NamedTuple):
    """What a task says of itself besides its result."""

    seconds: float
    cpu_seconds: float
    attempt: int
    node: str


@dataclass
class Tally:
    """What was done on the cluster so far."""

    tasks: int = 0
    retries: int = 0
    bytes_returned: int = 0
    busy_seconds: float = 0.0
    cpu_seconds: float = 0.0
    waited_seconds: float = 0.0
    nodes: set[str] = field(default_factory=set)

    def add(self, value: object, measured: Measured) -> None:
        """Count one finished task."""
        self.tasks += 1
        self.retries += measured.attempt
        self.busy_seconds += measured.seconds
        self.cpu_seconds += measured.cpu_seconds
        self.nodes.add(measured.node)
        self.bytes_returned += _size_of(value)


class Cluster:
    """A cluster that is connected; `connect` makes one."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        self.tally = Tally()
        self._measure = ray.remote(_measure)
        self._plain = ray.remote(_plain)

    @property
    def resources(self) -> dict[str, float]:
        """What the nodes that are alive offer: CPU, GPU, object_store_memory, ..."""
        return dict(self.ray.cluster_resources())

    def slots(self, device: str) -> int:
        """How many tasks can run at once."""
        return max(1, int(self.resources.get("CPU" if device == "cpu" else "GPU", 1)))

    def device(self, wanted: str, work: float = math.inf) -> str:
        """Turn ``"auto"``, ``"cpu"`` or ``"cuda"`` into what the nodes have; little work stays on CPUs."""
        has_gpus = self.resources.get("GPU", 0) >= 1
        if wanted == "cpu" or (wanted == "auto" and not (has_gpus and work >= WORTH_A_GPU)):
            return "cpu"
        if wanted != "auto" and not wanted.startswith("cuda"):
            raise InputError(f"device must be 'auto', 'cpu' or 'cuda', not {wanted!r}")
        if has_gpus:
            return "cuda"
        raise InputError(
            "device 'cuda' was asked for, but no node of the Ray cluster offers a GPU; use 'auto' or 'cpu'"
        )

    def put(self, value: object) -> Any:
        """Share a value with all tasks; returns a reference to it."""
        return self.ray.put(value)

    def keep(self, job: Task) -> Any:
        """Run a task whose result stays in the cluster; returns a reference. Made again where a node took it along."""
        return self._plain.options(num_cpus=1, max_retries=RETRIES).remote(job.function, *job.arguments)

    def each(
        self, jobs: Iterable[tuple[Tag, Task]], *, device: str = "cpu", memory: float = 0.0
    ) -> Generator[tuple[Tag, Any]]:
        """Run tasks, a window of them at a time; yields results as they come.

        Parameters
        ----------
        jobs
            Tasks with a tag each; taken from the iterable only when there is room for them.
        device
            ``"cpu"``: a task has one core; else it has one GPU.
        memory
            Bytes a task needs, where that is much; as many run on a node as it has memory for, at least one.

        Raises
        ------
        InputError
            What a task raised, or that Ray gave up on one. Tasks that are still out run to their end, seconds later;
            calling them back can bring the driver down, where one ends at that moment (Ray 2.60).
        """
        ray = self.ray
        needs = {"num_cpus": 1} if device == "cpu" else {"num_cpus": 1, "num_gpus": 1}
        if memory:
            needs["memory"] = int(min(memory, max(node["Resources"].get("memory", 0) for node in ray.nodes())))
        submit = self._measure.options(max_retries=RETRIES, **needs)
        out: dict[Any, Tag] = {}
        source = iter(jobs)
        begin = looked = time.perf_counter()
        room = AHEAD * self.slots(device)
        try:
            while True:
                while len(out) < room and (following := next(source, None)) is not None:
                    tag, job = following
                    out[submit.remote(job.function, *job.arguments)] = tag
                if not out:
                    return
                (reference,), _ = ray.wait(list(out))
                tag = out.pop(reference)
                value, measured = ray.get(reference)
                del reference
                self.tally.add(value, measured)
                yield tag, value
                if time.perf_counter() - looked > LOOK_AROUND:
                    looked = time.perf_counter()
                    room = AHEAD * self.slots(device)
        except ray.exceptions.RayError as error:
            raise self.explained(error) from None
        finally:
            self.tally.waited_seconds += time.perf_counter() - begin

    def get(self, reference: Any) -> Any:
        """Fetch a kept value."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            raise self.explained(error) from None

    def explained(self, error: BaseException) -> InputError:
        """Say what the user can mend, wherever in the chain of causes it is."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, InputError):
                message = getattr(cause, "cause", cause.args[0])  # without the traceback that Ray puts in front of it
                return InputError(str(message), cause.field)
            cause = getattr(cause, "cause", None) or cause.__cause__
        return InputError(
            f"Ray gave up on a task ({type(error).__name__}: {str(error).strip().splitlines()[0]}). See that the nodes "
            "have memory and see the inputs, and run again; with a work folder, finished tiles are not computed again"
        )


def run_here(jobs: Iterable[tuple[Tag, Task]]) -> Iterator[tuple[Tag, Any]]:
    """Do in this process what `Cluster.each` does in tasks; arguments are values."""
    return ((tag, job.function(*job.arguments)) for tag, job in jobs)


@contextmanager
def connect(address: str | None = None) -> Iterator[Cluster]:
    """Join the cluster at `address`, or start Ray on this machine, for as long as the block lasts.

    Ray that is started here listens on the loopback interface alone, without a dashboard. Ray that this process is
    connected to already is used as it is, and stays connected.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    ray = _import_ray()
    if ray.is_initialized():
        yield Cluster(ray)
        return
    common, hint = {"log_to_driver": False, "logging_level": "error"}, ""
    try:
        if address is None:
            with _loopback_only(ray):
                ray.init("local", num_cpus=threads(), include_dashboard=False, **common)
        else:
            found = check_answers(address)
            hint = "" if AUTH in os.environ else f". Where the cluster asks for a token, set {AUTH}=token"
            ray.init(found, **common)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = "on this machine" if address is None else f"at {address!r}"
        raise InputError(f"Ray cannot be reached or started {where} ({error}){hint}") from None
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - half a second, and an extra
        import ray.exceptions  # noqa: PLC0415
    except ImportError:
        raise InputError("engine 'ray' needs Ray; pip install 'prune4rel[ray]'") from None
    return ray


@contextmanager
def _loopback_only(ray: Any) -> Iterator[None]:
    """Let Ray take 127.0.0.1 for this machine's address, whether it was imported before or not."""
    constants = ray._private.ray_constants  # noqa: SLF001 - read once at import, and no argument of init sets it
    before = os.environ.get(LOOPBACK), constants.ENABLE_RAY_CLUSTER
    os.environ[LOOPBACK] = "0"
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before[1]
        if before[0] is None:
            del os.environ[LOOPBACK]
        else:
            os.environ[LOOPBACK] = before[0]


def _measure(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Measured]:
    """Run one task on a worker, with a clock."""
    import ray  # noqa: PLC0415 - this runs on workers, where Ray is at work already

    one_thread()
    begin, begin_cpu = time.perf_counter(), time.process_time()
    value = function(*arguments)
    spent, spent_cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    worker = getattr(ray._private.worker.global_worker, "core_worker", None)  # noqa: SLF001 - Ray tells it nowhere else
    attempt = getattr(worker, "get_current_task_attempt_number", int)()
    return value, Measured(spent, spent_cpu, attempt, ray.get_runtime_context().get_node_id())


def _plain(function: Callable[..., Any], *arguments: Any) -> Any:
    one_thread()
    return function(*arguments)


def _size_of(value: object) -> int:
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, tuple | list):
        return sum(map(_size_of, value))
    return int(getattr(value, "nbytes", 0))
