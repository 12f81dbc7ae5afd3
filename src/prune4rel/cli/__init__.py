"""The command line: one thin file a verb. Nothing heavy is imported before a verb runs."""

import os
import sys
from typing import NoReturn

import typer

from prune4rel._version import __version__
from prune4rel.errors import InputError

INTERRUPTED = 130

app = typer.Typer(
    name="prune4rel",
    help="Find, fix and review wrong labels of training data; train the best model for a budget.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", "-V", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    del version


def main() -> NoReturn:
    """Run the command line; what the user can mend ends in one line and exit code 2."""
    os.environ["PYTHONSAFEPATH"] = "1"  # worker processes, too, import nothing that lies about in the current folder
    try:
        from prune4rel.cli import (  # noqa: F401 - each adds its verb to the app
            clean,
            datasets,
            demo,
            doctor,
            embed,
            encoders,
            export,
            learners,
            methods,
            noise,
            plan,
            report,
            reproduce,
            review,
            run,
            select,
            train,
            warmup,
        )

        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _fail("interrupted; nothing half-written was left behind", INTERRUPTED)
        raise
    except KeyboardInterrupt:
        _fail("interrupted; nothing half-written was left behind", INTERRUPTED)
    except InputError as error:
        _fail(str(error), 2)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        _fail("this needs PyTorch, which is not installed: pip install 'prune4rel[train]'", 2)
    except MemoryError:
        _fail("out of memory; take less (select: --memory or a higher --tau; train: --set batch=...)", 2)
    except OSError as error:
        _fail(f"{error.filename or 'file system'}: {error.strerror or error}", 2)
    raise SystemExit(0)


def _fail(message: str, code: int) -> NoReturn:
    typer.secho(f"error: {message}", err=True, fg="red")
    sys.exit(code)
