"""Pages that MkDocs makes while it builds the site, so that they are never out of date.

- ``commands/``: the help of every command, a page each;
- ``reference/``: the public names, from their docstrings;
- ``comparison.html``: the report of all results;
- ``tutorials/``: the notebooks, with the output that is kept in them.
"""

import base64
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import prune4rel
from prune4rel import cli

HERE = Path(__file__).parent

ROOMS = {
    "sklearn": "scikit-learn",
    "torch": "PyTorch",
    "lightning": "Lightning",
    "transformers": "Hugging Face's Trainer",
    "bridges": "Labels in other tools",
    "methods": "Methods of your own",
    "learners": "Learners of your own",
    "data": "Data sets of your own",
    "networks": "Networks of your own",
    "encoders": "Encoders of your own",
    "exporting": "Forms of export of your own",
}
"""Modules beside `prune4rel` itself whose `__all__` is public, by the title of their page."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for pages in (command_pages(), reference_pages(), tutorial_pages()):
        for place, content in pages:
            files.append(File.generated(config, place, content=content))
    whole = (HERE / "results.html").read_text(encoding="utf-8")  # where results.md comes to lie
    files.append(File.generated(config, "comparison.html", content=whole))
    return files


# The help of commands


def commands() -> Mapping[str, Any]:
    """Return all commands by name."""
    for module in pkgutil.iter_modules(cli.__path__, "prune4rel.cli."):
        importlib.import_module(module.name)
    found: Mapping[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    return {name: found[name] for name in sorted(found)}


def command_pages() -> Iterator[tuple[str, str]]:
    """Give the page of every command, and the list of them."""
    rows = []
    for name, command in commands().items():
        about, *more = re.split(r"\n\s*\n", command.help.strip())
        rows.append(f"| [`{name}`]({name}.md) | {_cell(about)} |")
        parts = [f"# prune4rel {name}", about, f"```sh\n{_usage(name, command)}\n```", *map(_paragraph, more)]
        panels: dict[str, list[Any]] = {}
        for option in command.params:
            panels.setdefault(getattr(option, "rich_help_panel", None) or "Options", []).append(option)
        for panel, options in panels.items():
            parts += [f"## {panel}", "\n".join(["| | default | |", "|---|---|---|", *map(_row, options)])]
        yield f"commands/{name}.md", "\n\n".join(parts) + "\n"
    told = "What `prune4rel COMMAND --help` says. Exit codes: 0 done, 2 the input was wrong, 130 interrupted."
    yield "commands/index.md", "\n\n".join(["# Commands", told, "\n".join(["| | |", "|---|---|", *rows])]) + "\n"


def _usage(name: str, command: Any) -> str:
    arguments = [f"[{option.name.upper()}]" for option in command.params if _is_argument(option)]
    return " ".join(["prune4rel", name, *arguments, "[OPTIONS]"])


def _is_argument(option: Any) -> bool:
    return option.param_type_name == "argument"


def _paragraph(text: str) -> str:
    """Set lines of help that are command lines as such."""
    words = " ".join(text.split())
    return f"```sh\n{words}\n```" if re.fullmatch(r"prune4rel [^,.]*", words) else words


def _row(option: Any) -> str:
    names = [option.name.upper()] if _is_argument(option) else [*option.opts, *option.secondary_opts]
    default = option.default
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
    said = "required" if option.required else shown
    return f"| {', '.join(f'`{name}`' for name in names)} | {_cell(said)} | {_cell(option.help or '')} |"


def _cell(text: str) -> str:
    """Return a text for a cell of a table; what Markdown would take for its own outside of code is escaped."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    parts[::2] = [re.sub(r"([*_<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


# The reference


def reference_pages() -> Iterator[tuple[str, str]]:
    """Give a page of the names of `prune4rel` itself, and one of every other public module."""
    everyones = [getattr(prune4rel, name) for name in sorted(prune4rel.__all__, key=str.lower) if name[0] != "_"]
    yield "reference/index.md", _page("In Python: prune4rel", "import prune4rel as p4r", everyones)
    for room, title in ROOMS.items():
        module = importlib.import_module(f"prune4rel.{room}")
        things = [each for each in _public(module) if each not in everyones]
        yield f"reference/{room}.md", _page(f"{title}: prune4rel.{room}", f"import prune4rel.{room}", things)


def _public(module: Any) -> list[Any]:
    own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
    return [getattr(module, name) for name in getattr(module, "__all__", own) if name[0] != "_"]


def _page(title: str, how: str, things: list[Any]) -> str:
    shown = [f"::: {each.__module__}.{each.__qualname__}" for each in things if hasattr(each, "__qualname__")]
    return "\n\n".join([f"# {title}", f"```python\n{how}\n```", *shown]) + "\n"


# Tutorials


def tutorial_pages() -> Iterator[tuple[str, str | bytes]]:
    """Give a page of every notebook, and the pictures in it."""
    for path in sorted((HERE / "tutorials").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        parts, pictures = [], 0
        for cell in notebook["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code":
                parts.append(source)
                continue
            language, code = ("sh", source.partition("\n")[2]) if source.startswith("%%sh") else ("python", source)
            parts.append(f"```{language}\n{code}\n```")
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data:
                    pictures += 1
                    name = f"{path.stem}-{pictures}.png"
                    yield f"tutorials/{name}", base64.b64decode("".join(data["image/png"]))
                    parts.append(f"![What the cell above draws]({name})")
                elif "text/html" in data:
                    parts.append(_table("".join(data["text/html"])))
                else:
                    text = "".join(output.get("text") or data["text/plain"]).rstrip()
                    parts.append(f"```text\n{text}\n```")
        parts.append(f"*[This page as a notebook]({path.name})*")
        yield f"tutorials/{path.stem}.md", "\n\n".join(parts) + "\n"


def _table(html: str) -> str:
    """Return the table of a data frame alone, without the style around it."""
    found = re.search(r"<table.*</table>", html, re.DOTALL)
    return re.sub(r"\n\s*", "\n", found[0]).replace(' border="1" class="dataframe"', "") if found else ""
