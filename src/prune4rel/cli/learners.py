"""``prune4rel learners``: which there are, and what they take."""

from typing import Annotated

from typer import Argument

from prune4rel.cli import app


@app.command()
def learners(name: Annotated[str | None, Argument(help="Show this learner in full.")] = None) -> None:
    """List the learners, or show one in full."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    from prune4rel.learners import get, list_learners

    console = Console(highlight=False)
    if name is not None:
        entry = get(name)
        console.print(entry.name, style="bold")
        console.print((inspect.getdoc(entry.kind) or "").partition("Examples\n")[0].strip(), markup=False)
        if entry.options:
            shown = ", ".join(f"{key}={value!r}" for key, value in entry.options.items())
            console.print(f"\noptions: {shown}", markup=False)
        if entry.citation:
            console.print(f"from: {entry.citation}", markup=False, soft_wrap=True)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("learner", "what it does", "options"):
        table.add_column(title, overflow="fold")
    for key in list_learners():
        entry = get(key)
        table.add_row(key, entry.summary, ", ".join(entry.options))
    console.print(table)
    console.print("\nOne in full: prune4rel learners NAME", soft_wrap=True)
