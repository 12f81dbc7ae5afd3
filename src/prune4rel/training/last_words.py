"""Where several processes end together, one of them says why."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from torch.distributed import Store  # type: ignore[attr-defined]

FAILED = 2
SPEAKER = "speaker"
GRACE = 5.0
"""Seconds to say what there is to say, once told to stop."""

SHOW_CURSOR = "\x1b[?25h"
STOPPED = (
    "told to stop: another process of this training has ended, or the whole job was stopped; run the same command "
    "again, with as many processes as you like: it goes on from the last checkpoint"
)


class LastWords:
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
    >>> first, second = LastWords(store, 1), LastWords(store, 0)
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
def speaking_when_stopped(words: LastWords) -> Iterator[None]:
    """End with a message when told to stop (SIGTERM), also while waiting for a device or another process.

    That is how the other processes learn of one that was killed. Python's own handlers run only once such a wait is
    over, which may be never; so a thread listens. Outside the main thread nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hears, tells = socket.socketpair()
    tells.setblocking(False)
    before = signal.signal(signal.SIGTERM, _leave_it_to_the_thread)
    told_before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_listen, args=(hears, words), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        # the message is on its way out, and must not be overtaken
        signal.signal(signal.SIGTERM, _end_soon if words.claimed else before)
        tells.close()
        thread.join()
        hears.close()


def _leave_it_to_the_thread(*_: object) -> None:
    """Do nothing: with a handler of its own, Python tells the thread."""


def _end_soon(*_: object) -> None:
    timer = threading.Timer(GRACE, os._exit, [FAILED])
    timer.daemon = True
    timer.start()


def _listen(hears: socket.socket, words: LastWords) -> None:
    while numbers := hears.recv(64):
        if signal.SIGTERM not in numbers or words.claimed:
            continue  # whoever claimed is about to speak, and to end
        if words.claim():
            cursor = SHOW_CURSOR if sys.stderr.isatty() else ""
            sys.stderr.write(f"{cursor}error: {STOPPED}\n")
            sys.stderr.flush()
        os._exit(FAILED)
