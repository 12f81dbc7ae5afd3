"""``prune4rel methods``: what there is to choose from."""

from typing import Annotated

from typer import Argument

from prune4rel.cli import app


@app.command()
def methods(name: Annotated[str | None, Argument(help="Show this method in full.")] = None) -> None:
    """List the selection methods, or show one in full."""
    import inspect

    from rich.console import Console
    from rich.table import Table

    from prune4rel.methods import get, list_methods

    console = Console(highlight=False)
    if name is not None:
        method = get(name)
        console.print(method.name, style="bold")
        console.print(inspect.getdoc(method.run) or "", markup=False)
        console.print(
            f"\nneeds: labels, {', '.join(method.needs)}" if method.needs else "\nneeds: labels", markup=False
        )
        console.print(f"balanced: {'yes' if method.balances else 'no'}   seeded: {'yes' if method.seeded else 'no'}")
        console.print(f"cost: {method.cost}", markup=False)
        if method.options:
            shown = ", ".join(f"{key}={value!r}" for key, value in method.options.items())
            console.print(f"options: {shown}", markup=False)
        if method.citation:
            console.print(f"from: {method.citation}", markup=False)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("method", "needs besides labels", "balanced", "seeded", "what it does"):
        table.add_column(title, overflow="fold")
    for key in list_methods():
        method = get(key)
        needs = ", ".join(method.needs) or "nothing"
        table.add_row(key, needs, "yes" if method.balances else "no", "yes" if method.seeded else "no", method.summary)
    console.print(table)
