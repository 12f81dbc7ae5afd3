"""Flags of commands, made from options as they are declared."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

from typer import Context, Option

from prune4rel.cli.pairs import check_names, read_values
from prune4rel.errors import InputError
from prune4rel.steps.options import Options, declared

Verb = Callable[..., None]


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
    chosen = [each for each in declared(kind) if each.name not in without and (not only or each.name in only)]

    def add(verb: Verb) -> Verb:
        @wraps(verb)
        def command(context: Context, **values: Any) -> None:
            told = {each.name: values.pop(each.name) for each in chosen}
            given = {each.name: _read(each, told[each.name]) for each in chosen if _is_given(context, each.name)}
            verb(given=given, **values)

        own = [each for name, each in inspect.signature(verb, eval_str=True).parameters.items() if name != "given"]
        first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
        parameters = sorted([first, *map(_flag, chosen), *own], key=lambda each: each.kind)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return add


def _is_given(context: Context, name: str) -> bool:
    """Whether a flag was given, rather than left at its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def flag_of(each: "Field[Any]") -> str:
    """Return how the command line calls an option."""
    return each.metadata["flag"] or f"--{each.name.replace('_', '-')}"


def _flag(each: "Field[Any]") -> inspect.Parameter:
    known, kind, default = each.metadata, each.type, each.default
    if get_origin(kind) is dict:
        kind, default = list[str] | None, None
    elif get_origin(kind) is tuple:
        kind, default = str | None, ",".join(map(str, each.default)) or None  # type: ignore[arg-type]
    about = Option(flag_of(each), help=known["about"], rich_help_panel=known["panel"], metavar=known["metavar"] or None)
    annotation = Annotated[kind, about]  # type: ignore[valid-type]
    return inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read(each: "Field[Any]", told: Any) -> Any:
    """Read an option out of what was typed."""
    flag = flag_of(each)
    if get_origin(each.type) is dict:
        return _read_training(told, flag) if each.name == "training" else read_values(told, flag)
    if get_origin(each.type) is tuple:
        words = [part.strip() for part in told.split(",") if part.strip()]
        return [_number(word, flag) for word in words] if float in get_args(each.type) else words
    return told


def _number(text: str, flag: str) -> float:
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
