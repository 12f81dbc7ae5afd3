"""The command line: one thin file a verb. Nothing heavy is imported before a verb runs."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import NoReturn

import typer

from prune4rel._version import __version__
from prune4rel.ending import LEFT, heard_by, leave
from prune4rel.errors import InputError, in_a_line

INTERRUPTED = 130
BUG = 70
"""Exit code where the program itself is wrong; 2 is what the user can mend."""

COMPLETING = "_PRUNE4REL_COMPLETE"
"""Set by shells that want a line completed, which they tell by other variables."""

VERBS = {
    "clean": "Find wrong labels, and say what they should be: in seconds, without a network being trained.",
    "datasets": "List the data sets, show one in full, or check one that lies in a folder.",
    "demo": "Run everything on scikit-learn's digits with wrong labels, and write a report.",
    "doctor": "Show versions, devices, speed, and what is missing for which extra.",
    "embed": "Turn images or texts into vectors that a pretrained model makes of them.",
    "encoders": "List the encoders, show one in full, or forget what they remember.",
    "export": "Write a judged set with corrected labels; the original is neither changed nor moved.",
    "learners": "List the learners, or show one in full.",
    "methods": "List the selection methods, or show one in full.",
    "noise": "Write labels with an exact share of wrong ones, for a study of your own.",
    "plan": "Tell tiles, memory, traffic, hours and the bottleneck of a selection on a cluster, and settings for it.",
    "report": "Write one self-contained HTML page about one run, or several side by side.",
    "reproduce": "Run a table or figure of the paper again, and compare; "
    "`budgets` is ours: the same number of steps for all.",
    "review": "Settle labels by hand, by keyboard, on a page of your own machine.",
    "run": "Select by several methods, train on what each picked, and report: the whole way from a data set to a page.",
    "select": "Choose a subset of the training examples.",
    "train": "Train a noise-robust learner on everything, or on a subset; "
    "correct the labels of the whole training set.",
    "warmup": "Train briefly on everything and write down what the model makes of every example.",
}
"""Every verb with the first sentence of its help, for the first page, which need not import them."""


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", "-V", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    del version


def _new_app() -> typer.Typer:
    made = typer.Typer(
        name="prune4rel",
        help="Find, fix and review wrong labels of training data; train the best model for a budget.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_root)
    return made


app = _new_app()


def load_verbs(*names: str) -> None:
    """Let verbs add themselves to the app; all of them, unless some are named."""
    for name in names or VERBS:
        import_module(f"prune4rel.cli.{name}")


def _app_for(words: Sequence[str]) -> typer.Typer:
    """Return an app that knows what a line needs: one verb, or of each what it is for."""
    if words and words[0] in VERBS:
        load_verbs(words[0])
    elif set(words) <= {"-h", "--help"} and COMPLETING not in os.environ:
        page = _new_app()
        for name, about in VERBS.items():
            page.command(name, help=about)(lambda: None)
        return page
    else:
        load_verbs()
    return app


def main() -> NoReturn:
    """Run the command line; what the user can mend ends in one line and exit code 2."""
    os.environ["PYTHONSAFEPATH"] = "1"  # worker processes, too, import nothing that lies about in the current folder
    _end_when_told()
    _print_anywhere()
    try:
        found = _app_for(sys.argv[1:])
        heed()
        found()
    except SystemExit as end:
        _be_done()
        if end.code == INTERRUPTED:
            _fail(f"interrupted; {LEFT}", INTERRUPTED)
        raise
    except (Exception, KeyboardInterrupt, EndedError) as error:  # noqa: BLE001 - the last net
        _be_done()
        _fail(*_words_of(error))
    raise SystemExit(0)


def _words_of(error: BaseException) -> tuple[str, int]:
    """Say what ended a command, and the exit code that says so to programs."""
    match error:
        case KeyboardInterrupt():
            told = f"interrupted; {LEFT}", INTERRUPTED
        case EndedError():
            told = f"ended by {error}; {LEFT}", 128 + error.number
        case InputError():
            told = str(error), 2
        case ModuleNotFoundError(name="torch"):
            told = "this needs PyTorch, which is not installed: pip install 'prune4rel[train]'", 2
        case MemoryError():
            told = "out of memory; take less (select: --memory or a higher --tau; train: --set batch=...)", 2
        case OSError():
            told = in_a_line(f"{error.filename or 'file system'}: {error.strerror or error}"), 2
        case _:
            told = _bug(error), BUG
    return told


class EndedError(BaseException):
    """The system, or another program, has told this one to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


_told: list[int] = []
"""Signals that told this process to end."""


def _end(number: int, _: object) -> NoReturn:
    _told.append(number)
    raise KeyboardInterrupt if number == signal.SIGINT else EndedError(number)


def was_told() -> bool:
    """Whether this process was told to end."""
    return bool(_told)


def heed() -> None:
    """End now if that was told and some library, importing others say, has passed over it; before what waits."""
    if _told:
        _end(_told[-1], None)


def _end_when_told() -> None:
    """Clean up when told to end, as when interrupted; whoever started this may have it pass over a signal (nohup)."""
    _told.clear()
    heard_by(_end)


def _be_done() -> None:
    """From here on a signal ends this at once: nothing is left to be cleaned up."""
    heard_by(leave)


def _print_anywhere() -> None:
    """Print what a terminal has no letters for as escapes, and nothing where what was there to print to is closed."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the lowest number that is free is its own, which no other file should get
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _bug(error: BaseException) -> str:
    """Say in one line that the program is wrong, and leave the rest in a file for those who mend it."""
    import tempfile
    import traceback

    told = f"prune4rel {__version__}, Python {sys.version}\n{sys.argv}\n\n{''.join(traceback.format_exception(error))}"
    where = "; no file could be written with the details"
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="prune4rel-bug-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(told)
        where = f"; details are in {name}"
    words = in_a_line(f"{type(error).__name__}: {error}", 200)
    return f"this is a bug in prune4rel, please report it ({words}){where}"


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError):  # a terminal that is gone, as it is after SIGHUP
        typer.secho(f"error: {message}", err=True, fg="red")
    sys.exit(code)
