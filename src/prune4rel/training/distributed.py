"""Training in several processes together, as ``torchrun`` starts them; one of them says why they end."""

import hashlib
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed import Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from prune4rel.errors import InputError
from prune4rel.loading.schedule import Ranks, first_and_last
from prune4rel.machine import THREADS, resolve_device, sharing
from prune4rel.training.batch_norm import synchronise

FAILED = 2
SPEAKER = "speaker"
GRACE = 5.0
"""Seconds to say what there is to say, once told to stop."""

SHOW_CURSOR = "\x1b[?25h"
STOPPED = (
    "told to stop: another process of this training has ended, or the whole job was stopped; run the same command "
    "again, with as many processes as you like: it goes on from the last checkpoint"
)


class FirstToFail:
    """Settles which of many failing processes may speak: the first one.

    A process that fails makes others fail, and those know less of the reason.

    Parameters
    ----------
    store
        Where processes leave a word for each other.
    rank
        Which of them this is.

    Examples
    --------
    >>> from torch.distributed import HashStore
    >>> store = HashStore()
    >>> first, second = FirstToFail(store, 1), FirstToFail(store, 0)
    >>> first.claim(), second.claim(), first.claim(), first.claimed, second.claimed
    (True, False, False, True, False)
    """

    def __init__(self, store: Store, rank: int) -> None:
        self.store, self.rank = store, rank
        self.claimed = False
        self._lock = threading.Lock()

    def claim(self) -> bool:
        """Whether this process should say why all end; true once, for one process."""
        with self._lock:
            if self.claimed:
                return False
            try:
                speaker = self.store.compare_set(SPEAKER, "", str(self.rank)).decode()
            except RuntimeError:
                speaker = str(self.rank)  # nobody is left to ask
            self.claimed = speaker == str(self.rank)
            return self.claimed


@contextmanager
def report_when_stopped(words: FirstToFail) -> Iterator[None]:
    """End with a message when told to stop (SIGTERM), also while waiting for a device or another process.

    That is how the other processes learn of one that was killed. Python's own handlers run only once such a wait is
    over, which may be never; so a thread listens. Outside the main thread nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.signal(signal.SIGTERM, _leave_it_to_the_thread)
    told_before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_listen, args=(receiver, words), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        # the message is on its way out, and must not be overtaken
        signal.signal(signal.SIGTERM, _end_soon if words.claimed else before)
        sender.close()
        thread.join()
        receiver.close()


def _leave_it_to_the_thread(*_: object) -> None:
    """Do nothing: with a handler of its own, Python tells the thread."""


def _end_soon(*_: object) -> None:
    timer = threading.Timer(GRACE, os._exit, [FAILED])
    timer.daemon = True
    timer.start()


def _listen(receiver: socket.socket, words: FirstToFail) -> None:
    while numbers := receiver.recv(64):
        if signal.SIGTERM not in numbers or words.claimed:
            continue  # whoever claimed is about to speak, and to end
        if words.claim():
            cursor = SHOW_CURSOR if sys.stderr.isatty() else ""
            sys.stderr.write(f"{cursor}error: {STOPPED}\n")
            sys.stderr.flush()
        os._exit(FAILED)


PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others: reading a data set may take one of them longer."""

COURTESY = 1.0
"""Seconds a process that has nothing to say waits before it ends, so that the one that has can."""

BUCKET_BYTES = 64 * 2**20
"""Gradients that travel together."""


class LostRankError(InputError):
    """Another process has ended, or does not answer."""

    def __init__(self, reason: object) -> None:
        sentence, *_ = re.split(r"\. |\n", re.sub(r"^\[\S+:\d+\] ", "", str(reason)))
        super().__init__(
            "another process of this training has ended or does not answer, so all stop; run the same command again, "
            f"with as many processes as you like: it goes on from the last checkpoint ({sentence})"
        )


class DistributedRanks(Ranks):
    """One of several processes that train together; made by `join`.

    Everything a training keeps (weights, tables of every example, sums of losses) is the same in every process after
    every step, bit for bit, so that decisions taken from it are, too, and any process's state is the state of all.

    Parameters
    ----------
    rank, world
        Which process this is, and of how many.
    device
        Where its tensors are. Tensors on the CPU may be exchanged, too.
    """

    def __init__(self, rank: int, world: int, device: torch.device) -> None:
        self.rank, self.world, self.device = rank, world, device

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all ranks; gradients flow back to every rank's share."""
        total: Tensor = _Sum.apply(values)  # type: ignore[no-untyped-call]
        return total

    def once(self, value: Tensor) -> Tensor:
        """Return the share of a term that every rank computes alike."""
        return value / self.world

    def gather(self, rows: Tensor) -> Tensor:
        """Rows of all ranks, in order, without gradients; ranks may have different numbers of rows."""
        counts = [int(count) for count in self._exchange(torch.tensor([len(rows)]))]
        sent = rows.detach().to(torch.uint8 if rows.dtype == torch.bool else rows.dtype)
        if len(set(counts)) > 1:
            filled = sent.new_zeros((max(counts), *sent.shape[1:]))
            filled[: len(sent)] = sent
            sent = filled
        if not max(counts):
            return rows.detach()
        parts = self._exchange(sent.contiguous())
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)]).to(rows.dtype)

    def mine(self, rows: Tensor) -> Tensor:
        """Return this rank's rows of something that all ranks hold whole."""
        first, last = first_and_last(len(rows), self.rank, self.world)
        return rows[first:last]

    def reduce_(self, gradients: list[Tensor]) -> None:
        """Sum gradients over all ranks, in place, many in one message."""
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            _all_reduce(flat)
            parts = torch.split(flat, [gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view(gradient.shape))

    def barrier(self) -> None:
        """Wait for the others."""
        _all_reduce(torch.zeros(1))

    def check_alike(self, text: str, what: str) -> None:
        """Refuse to go on, on all ranks, where another rank calls with another text."""
        digest = hashlib.sha256(text.encode()).digest()
        first, *others = self._exchange(torch.tensor(list(digest), dtype=torch.uint8))
        for rank, other in enumerate(others, start=1):
            if not torch.equal(first, other):
                raise InputError(
                    f"process {rank} of {self.world} has another {what} than process 0; all have to be started with "
                    "the same command, version, data and folder (on several machines: a folder they share)"
                )

    def prepare(self, learner: nn.Module) -> None:
        """Check that all ranks begin with the same numbers, and let layers that need the whole batch have it."""
        digest = hashlib.sha256()
        for values in learner.state_dict().values():
            digest.update(values.detach().cpu().reshape(-1).view(torch.uint8).numpy())
        self.check_alike(digest.hexdigest(), "set of initial weights")
        synchronise(learner, self, fused=self.device.type == "cuda")

    def _exchange(self, values: Tensor) -> list[Tensor]:
        """Return what every rank passed, of the same shape everywhere."""
        parts = [torch.empty_like(values) for _ in range(self.world)]
        with _noticing_loss():
            distributed.all_gather(parts, values)
        return parts


class _Sum(torch.autograd.Function):
    """Every rank's loss depends on the sum, so what flows back to a share is the sum of all ranks' gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        del ctx
        total = values.detach().clone(memory_format=torch.contiguous_format)
        _all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        del ctx
        total = gradient.clone(memory_format=torch.contiguous_format)
        _all_reduce(total)
        return total


def _all_reduce(values: Tensor) -> None:
    with _noticing_loss():
        distributed.all_reduce(values)


@contextmanager
def _noticing_loss() -> Iterator[None]:
    """Say in words what it means that processes could not talk to each other."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise LostRankError(error) from error


def _buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of the same type, as many as make a message worth sending."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        own = tensor.numel() * tensor.element_size()
        if bucket and (tensor.dtype != bucket[0].dtype or size + own > BUCKET_BYTES):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += own
    if bucket:
        yield bucket


@contextmanager
def join(device: str = "auto") -> Iterator[tuple[Ranks, str]]:
    """Join the other processes that ``torchrun`` started; alone where it did not.

    Where one process fails, all end: the first to fail raises what went wrong, and the others exit quietly.

    Parameters
    ----------
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``. On GPUs every process takes one of its own, by its local rank.

    Yields
    ------
    ranks, device
        For `train` and `warm_up`.

    Examples
    --------
    >>> with join("cpu") as (ranks, device):
    ...     print(ranks.rank, ranks.world, device)
    0 1 cpu
    """
    if "RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        yield Ranks(), device
        return
    store, rank, world = next(rendezvous("env://", timeout=PATIENCE))
    own = distributed.PrefixStore(_attempt(), store)  # type: ignore[attr-defined]
    words = FirstToFail(distributed.PrefixStore(_attempt(), store.clone()), rank)  # type: ignore[attr-defined]
    with report_when_stopped(words), _fewer_threads():
        may_leave = False
        try:
            where = _own_device(device)
            may_leave = where.type == "cpu"
            with _noticing_loss():
                distributed.init_process_group(
                    "gloo" if where.type == "cpu" else "cpu:gloo,cuda:nccl",
                    store=own,
                    rank=rank,
                    world_size=world,
                    timeout=PATIENCE,
                )
            ranks = DistributedRanks(rank, world, where)
            yield ranks, str(where)
            ranks.barrier()
            may_leave = True
        except BaseException as error:
            if not words.claim():
                time.sleep(COURTESY)
                raise SystemExit(FAILED) from None
            if isinstance(error, distributed.DistError):
                raise LostRankError(error) from error
            raise
        finally:
            # a GPU would wait for what the others never sent
            if may_leave and distributed.is_initialized():
                distributed.destroy_process_group()


def _attempt() -> str:
    """Name this start of the job: where torchrun starts it again, old addresses are still in the store."""
    one_machine = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"  # several may count differently
    return f"attempt{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if one_machine else ''}"


def _own_device(device: str) -> torch.device:
    """Return the CPU, or a GPU that no other process of this machine takes."""
    if re.fullmatch(r"cuda:\d+", device):
        raise InputError(f"every process takes a GPU of its own: say --device cuda, not {device}", "device")
    if resolve_device(device) == "cpu":
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", os.environ["RANK"]))
    processes, there = _processes_here(), torch.cuda.device_count()
    if processes > there:
        raise InputError(
            f"{processes} processes were started on this machine, which has {there} GPUs; start no more than that "
            f"(torchrun --nproc-per-node {there}), or train on the CPU with --device cpu",
            "device",
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def _processes_here() -> int:
    return int(os.environ.get("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"]))


@contextmanager
def _fewer_threads() -> Iterator[None]:
    """Leave the other processes of this machine their share of its cores, unless told otherwise."""
    if THREADS in os.environ:
        yield
        return
    with sharing(_processes_here()):
        yield
