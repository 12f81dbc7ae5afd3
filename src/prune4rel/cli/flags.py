"""Flags: made from options as they are declared, given as NAME=VALUE, or shared by several commands."""

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer import Context, Option

from prune4rel.errors import InputError, refuse_unknown
from prune4rel.reading import parse_json, read_text
from prune4rel.registry import about_parameters
from prune4rel.steps.options import Options, declared

if TYPE_CHECKING:
    from prune4rel.data import Dataset
    from prune4rel.decisions import Settled
    from prune4rel.steps.data import DataOptions


def read_pairs(items: Iterable[str] | None, flag: str) -> dict[str, str]:
    """Split NAME=VALUE into names and texts; hyphens in names become underscores.

    >>> read_pairs(["noise=worst", "test-share=0.2"], "--option")
    {'noise': 'worst', 'test_share': '0.2'}
    """
    pairs = {}
    for item in items or ():
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"{flag} takes NAME=VALUE, not {item!r}")
        pairs[name.replace("-", "_")] = value
    return pairs


def check_names(owner: str, given: Iterable[str], known: Collection[str], *, flags: Collection[str]) -> None:
    """Refuse options that their owner does not have, and say so where one is a flag of commands.

    >>> check_names("training", ["seed"], ["lr", "batch"], flags=["seed"])
    Traceback (most recent call last):
    prune4rel.errors.InputError: training has no option 'seed'; commands that take it have a flag for it: --seed
    """
    for name in given:
        if name not in known and name in flags:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{owner} has no option {name!r}; commands that take it have a flag for it: {flag}")
    refuse_unknown(owner, given, known)


def read_value(text: str) -> Any:
    """Read a number, true or false where the text looks like one, else the text itself.

    >>> read_value("0.2"), read_value("false"), read_value("worst")
    (0.2, False, 'worst')
    """
    try:
        return parse_json(text, "it")
    except InputError as error:
        if "nested too deeply" in str(error):
            raise InputError(f"{text[:20]}...: is nested too deeply") from None
        return text


def read_values(items: Iterable[str] | None, flag: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs with values of their types.

    >>> read_values(["noise=worst", "test-share=0.2"], "--option")
    {'noise': 'worst', 'test_share': 0.2}
    """
    return {name: read_value(text) for name, text in read_pairs(items, flag).items()}


DATA, MODEL = "Data", "Model and training"

DECISIONS = "What people settled: decisions.jsonl of `prune4rel review`, or a CSV."
LearnerName = Annotated[str, Option("--learner", help="See `prune4rel learners`.", rich_help_panel=MODEL)]
Seed = Annotated[int, Option("--seed", help="Of weights, order and augmentation.", rich_help_panel=MODEL)]
Code = Annotated[
    list[str] | None,
    Option("--code", help="my_file:my_function that a file names and that may be run, too; repeat."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No progress, no summary.")]


FolderOutput = Annotated[
    Path | None, Option("--output", "-o", help="The folder everything goes to.", rich_help_panel="Output")
]
SaveEvery = Annotated[float, Option("--save-every", help="Seconds between checkpoints.", rich_help_panel="Output")]


@contextmanager
def naming(files: Mapping[str, "Path | str"]) -> Iterator[None]:
    """Say of an error which file it is about, where the message does not begin with it."""
    try:
        yield
    except InputError as error:
        file = str(files.get(error.field or "", ""))
        if not file or str(error).startswith(file):
            raise
        raise InputError(f"{file}: {error}", error.field) from None


def read_names(path: Path | None) -> tuple[str, ...] | None:
    """Read names of classes, one a line."""
    if path is None:
        return None
    return tuple(read_text(path, "text file in UTF-8 of class names, one a line").removesuffix("\n").split("\n"))


def require_data(given: Collection[str], command: str) -> None:
    """Refuse to work with a data set that nobody named."""
    if "dataset" not in given:
        source = "name a SOURCE (a folder of images, a table, ...), or " if command == "run" else ""
        raise InputError(
            f"say what to work with: {source}--dataset NAME, as `prune4rel datasets` lists them; "
            "`prune4rel demo` needs no data"
        )


def open_dataset(options: "DataOptions") -> "Dataset":
    """Read the data set that was named, or say which flag is meant where an option of it is none."""
    from prune4rel.data import get
    from prune4rel.steps.data import open_dataset as read

    known = get(options.dataset).options
    check_names(f"data set {options.dataset!r}", options.options, known, flags=("data", "labels"))
    return read(options)


def tell_settled_of(options: "DataOptions") -> None:
    """Say what the decisions that were named came to, if any were."""
    from prune4rel.steps.data import read_settled

    if (settled := read_settled(options)) is not None:
        tell_settled(settled)


def tell_settled(settled: "Settled") -> None:
    """Say what decisions came to, and which of them could not be used."""
    typer.echo(f"decisions: {settled.summary}", err=True)
    for line in (*settled.notes, *settled.refused):
        typer.secho(f"note: {line}", err=True, fg="yellow")


Verb = Callable[..., None]
_PLAIN = {"bool": bool, "int": int, "float": float}


def takes(kind: type[Options], *, only: Collection[str] = (), without: Collection[str] = ()) -> Callable[[Verb], Verb]:
    """Give a command a flag for every option of a kind.

    The command gets what was given by these flags, and nothing else, as ``given``: names of options and their values.

    Parameters
    ----------
    kind
        The class that declares the options.
    only, without
        Names of options: which of them, and all but which.
    """
    chosen = {
        each.name: each for each in declared(kind) if each.name not in without and (not only or each.name in only)
    }
    return _taking("given", [_flag(each) for each in chosen.values()], lambda name, told: _read(chosen[name], told))


def takes_options_of(method: str, *, panel: str) -> Callable[[Verb], Verb]:
    """Give a command a flag for every option of a method that comes along; it gets those given as ``options``.

    Names, types and words of help are those of the method's own function and docstring, which are read and not run.
    """
    source = Path(__file__).parents[1] / "methods" / f"{method}.py"
    body = ast.parse(source.read_text(encoding="utf-8")).body
    (function,) = (node for node in body if isinstance(node, ast.FunctionDef) and node.name == method)
    about = about_parameters(ast.get_docstring(function) or "")
    types = {each.arg: ast.unparse(each.annotation) for each in function.args.kwonlyargs if each.annotation}
    flags = [_flag_of_method(name, types[name], _as_help(about[name]), panel) for name in types]
    return _taking("options", flags, lambda name, told: _read_typed(name, types[name], told))


def _as_help(about: str) -> str:
    """Return the first sentence, as the command line writes it.

    >>> _as_help('Aims at what ``tau="auto"`` says, or ``none``. And so on.')
    'Aims at what --tau auto says, or none.'
    """
    first = re.split(r"(?<=\.) (?=[A-Z])", about)[0]
    return re.sub(r'``(\w+)="(\w+)"``', r"--\1 \2", first).replace("`", "")


def _flag_of_method(name: str, kind: str, about: str, panel: str) -> inspect.Parameter:
    flag = f"--{name.replace('_', '-')}"
    typed: Any = next((found for word, found in _PLAIN.items() if kind in (word, f"{word} | None")), str) | None
    if kind == "bool | None":
        flag = f"{flag}/--no-{flag[2:]}"
    annotation = Annotated[typed, Option(flag, help=about, rich_help_panel=panel)]
    default = False if kind == "bool" else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read_typed(name: str, kind: str, told: Any) -> Any:
    """Read a value that may be a number or a word."""
    if not isinstance(told, str) or not kind.startswith("float"):
        return told
    try:
        return float(told)
    except ValueError:
        words = re.findall(r"'(\w+)'", kind)
        if told in words:
            return told
        raise InputError(f"--{name} must be a number, or {' or '.join(words)}; got {told!r}") from None


def _taking(argument: str, flags: list[inspect.Parameter], read: Callable[[str, Any], Any]) -> Callable[[Verb], Verb]:
    """Give a command some flags, and what was given by them, read, as one argument."""
    names = [each.name for each in flags]

    def add(verb: Verb) -> Verb:
        @wraps(verb)
        def command(context: Context, **values: Any) -> None:
            told = {name: values.pop(name) for name in names}
            given = {name: read(name, told[name]) for name in names if _is_given(context, name)}
            if "context" in inspect.signature(verb).parameters:
                values["context"] = context
            verb(**{argument: given}, **values)

        own = [each for name, each in inspect.signature(verb, eval_str=True).parameters.items() if name != argument]
        if all(each.name != "context" for each in own):
            own.insert(0, inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context))
        both = [*own, *flags] if argument == "options" else [*flags, *own]  # the order in which help shows them
        parameters = sorted(both, key=lambda each: each.kind)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return add


def _is_given(context: Context, name: str) -> bool:
    """Whether a flag was given, rather than left at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def flag_of(each: "Field[Any]") -> str:
    """Return how the command line calls an option, the name that is told first."""
    return _flags_of(each)[0]


def _flags_of(each: "Field[Any]") -> list[str]:
    names: str = each.metadata["flag"] or f"--{each.name.replace('_', '-')}"
    return names.split(",")


def _flag(each: "Field[Any]") -> inspect.Parameter:
    known, kind, default = each.metadata, each.type, each.default
    if get_origin(kind) is dict:
        kind, default = list[str] | None, None
    elif get_origin(kind) is tuple:
        kind, default = str | None, ",".join(map(str, each.default)) or None  # type: ignore[arg-type]
    about = Option(
        *_flags_of(each), help=known["about"], rich_help_panel=known["panel"], metavar=known["metavar"] or None
    )
    annotation = Annotated[kind, about]  # type: ignore[valid-type]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read(each: "Field[Any]", told: Any) -> Any:
    """Read an option out of what was typed."""
    flag = flag_of(each)
    if get_origin(each.type) is dict:
        return _read_training(told, flag) if each.name == "training" else read_values(told, flag)
    if get_origin(each.type) is tuple:
        words = [part.strip() for part in told.split(",") if part.strip()]
        return [read_number(word, flag) for word in words] if float in get_args(each.type) else words
    return told


def read_number(text: str, flag: str) -> float:
    """Read one of several numbers."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} takes numbers with commas between, not {text!r}") from None


def _read_training(pairs: list[str], flag: str) -> dict[str, Any]:
    """Read settings of training, and refuse what is none."""
    from dataclasses import fields

    from prune4rel.training.hyperparameters import Hyperparameters

    given = read_values(pairs, flag)
    flags = ("learner", "network", "seed", "device", "warmup_epochs")
    check_names("training", given, [each.name for each in fields(Hyperparameters)], flags=flags)
    return given
