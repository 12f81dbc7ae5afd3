"""Being told to end: by Ctrl-C, by the system, by a terminal that closes. Imports next to nothing, to listen early."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
LEFT = "nothing half-written was left behind"


def heard_by(listener: Callable[[int, Any], object]) -> None:
    """Have a function called when this process is told to end, unless whoever started it had it pass over that."""
    for name in ENDING:
        number = getattr(signal, name, None)
        with suppress(ValueError):  # only the main thread hears of signals
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                signal.signal(number, listener)


def leave(number: int, _: object) -> NoReturn:
    """End at once."""
    told = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    with suppress(OSError):
        os.write(2, f"error: {told}; {LEFT}\n".encode())
    os._exit(128 + number)
