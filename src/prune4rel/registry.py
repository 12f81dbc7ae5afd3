"""What the lists of methods, learners, data sets, networks, encoders and forms share: found, and looked up by name."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from prune4rel.errors import InputError, nearest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Entry = TypeVar("Entry")


def entry_points(*, group: str) -> "EntryPoints":
    """Look through the installed packages."""
    from importlib.metadata import entry_points as found  # noqa: PLC0415 - a fifth of the time `--help` takes

    return found(group=group)


class Entries(dict[str, Entry]):
    """All that was registered of a kind, by name: one file a thing, whose decorator puts it in here.

    Parameters
    ----------
    kind
        What it is, in words.
    package
        Dotted name of the package whose modules are imported when something is looked for.
    group
        Entry point group in which other packages name modules of theirs; called as the package unless told.
    first
        Name of the usual one, listed first.
    apart
        Modules of the package that register nothing and are slow to import.

    Raises
    ------
    InputError
        A module cannot be imported; the message names its file, or the package that brought it.

    Examples
    --------
    >>> datasets = Entries("data set", "prune4rel.data")
    >>> datasets["mine"] = "anything"
    >>> datasets.names("m*")
    ['mine']
    """

    def __init__(
        self, kind: str, package: str, *, group: str = "", first: str | None = None, apart: Collection[str] = ()
    ) -> None:
        super().__init__()
        self.kind, self.package, self.group, self.first, self.apart = kind, package, group or package, first, apart
        self._others: EntryPoints | None = None

    def found(self) -> Self:
        """Import every module that may register something, once, and return what is there then."""
        others = brought(self.group)
        if others is self._others:
            return self
        for module in iter_modules(import_module(self.package).__path__):
            if module.name not in self.apart:
                name = f"{self.package}.{module.name}"
                spec = find_spec(name)
                _or_say_who((spec and spec.origin) or name, partial(import_module, name))
        for entry in others:
            brought_by = f" of the package {entry.dist.name}" if entry.dist else ""
            _or_say_who(f"the entry point {entry.name} = {entry.value}{brought_by}", entry.load)
        self._others = others
        return self

    def names(self, pattern: str | None = None) -> list[str]:
        """All names, or those that match a pattern; see `listed`."""
        return listed(self.found(), pattern, first=self.first)

    def look_up(self, name: str, *more: str, known: Iterable[str] = ()) -> Entry:
        """Return the entry of a name, or point from an unknown name to the nearest; `more` are known besides."""
        return look_up(self.kind, name, self, known=known or [*self.names(), *more])


def brought(group: str) -> "EntryPoints":
    """Return what the installed packages bring of a kind."""
    return _entries(entry_points, group)


@cache
def _entries(find: Callable[..., "EntryPoints"], group: str) -> "EntryPoints":
    """Look through the installed packages once: it takes milliseconds, and names are looked up thousands of times."""
    return find(group=group)


def _or_say_who(culprit: str, load: Callable[[], object]) -> None:
    try:
        load()
    except Exception as error:
        raise InputError(
            f"{culprit}: cannot be imported ({type(error).__name__}: {error}); repair or remove it"
        ) from error


def import_users(what: str, name: str) -> Any:
    """Return what ``module:attribute`` names in code of the user's own, which is run: name no other's.

    A file in the current folder is imported by its path, so that no other file of that folder can be imported, and
    ``sys.path`` stays as it was; else the module has to be installed.

    Parameters
    ----------
    what
        What it is a name of, in words.
    """
    module, _, attribute = name.partition(":")
    if not attribute or not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"{what} {name!r}: write it as module:function, as in my_file:my_function", what)
    file = Path(f"{module}.py")
    try:
        return getattr(_import_file(module, file) if file.is_file() else import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise InputError(
            f"{what} {name!r}: cannot import {error.name!r}; is the file in this folder or installed? What a file of "
            "yours imports has to be installed, or named by PYTHONPATH",
            what,
        ) from None
    except AttributeError:
        raise InputError(f"{what} {name!r}: the module {module!r} has no {attribute!r}", what) from None
    except Exception as error:
        raise InputError(f"{what} {name!r}: cannot be imported ({type(error).__name__}: {error})", what) from error


def _import_file(module: str, file: Path) -> ModuleType:
    """Import a file by its path, once; no other file of its folder can be imported by it."""
    path = str(file.absolute())
    for known in (module, path):
        found = sys.modules.get(known)
        if found is not None and getattr(found, "__file__", None) == path:
            return found
    name = path if module in sys.modules else module  # which may be the name of something else
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AssertionError("a file that ends in .py can be imported")
    made = module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def listed(names: Iterable[str], pattern: str | None = None, *, first: str | None = None) -> list[str]:
    """Sort names for people: the usual one first, then by the alphabet.

    Parameters
    ----------
    pattern
        Only names that match it, with ``*``, ``?`` and ``[...]`` as in file names; all unless told.

    Examples
    --------
    >>> listed(["b", "usual", "a"], first="usual")
    ['usual', 'a', 'b']
    >>> listed(["small-cnn", "mlp"], "*cnn*")
    ['small-cnn']
    """
    found = (name for name in names if pattern is None or fnmatchcase(name, pattern))
    return sorted(found, key=lambda name: (name != first, name))


def look_up(kind: str, name: str, entries: Mapping[str, Entry], *, known: Iterable[str] | None = None) -> Entry:
    """Return the entry of a name, or point from an unknown name to the nearest.

    Parameters
    ----------
    kind
        What it is a name of, in words.
    known
        What to list as known, in this order; the names of the entries unless told.

    Examples
    --------
    >>> look_up("fruit", "aple", {"apple": 1, "pear": 2})
    Traceback (most recent call last):
    prune4rel.errors.InputError: unknown fruit 'aple'; did you mean 'apple'? Known: apple, pear
    """
    if not isinstance(name, str) or name not in entries:
        raise InputError(f"unknown {kind} {name!r}; {nearest(name, entries if known is None else known)}")
    return entries[name]


def options_of(function: Callable[..., object]) -> dict[str, Any]:
    """Names and defaults of the options of a function or class: what it takes by keyword only.

    >>> def method(signals, request, *, power=2): ...
    >>> options_of(method)
    {'power': 2}
    """
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def summary_of(thing: object, what: str) -> str:
    """Return the first line of a docstring, which is shown to users, or refuse what has none, by the name `what`.

    >>> summary_of(options_of, "'options_of'")
    'Names and defaults of the options of a function or class: what it takes by keyword only.'
    """
    summary = (inspect.getdoc(thing) or "").partition("\n")[0]
    if not summary:
        raise ValueError(f"{what} has no docstring; its first line is shown to users")
    return summary


def about_parameters(doc: str) -> dict[str, str]:
    r"""Return what a docstring says of each parameter, as one line.

    >>> about_parameters("Bake.\n\nParameters\n----------\nheat\n    Degrees. Not\n    too many.")
    {'heat': 'Degrees. Not too many.'}
    """
    _, _, section = doc.partition("Parameters\n----------\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line[0].isspace():
            if line.startswith("---"):
                break
            names = [name.strip() for name in line.split(",")]
        for name in names if line.startswith(" ") else ():
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found
