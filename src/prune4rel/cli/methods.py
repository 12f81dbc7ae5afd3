"""``prune4rel methods``: what there is to choose from."""

from typing import Annotated

from typer import Argument

from prune4rel.cli import app
from prune4rel.cli.tables import AsJson


@app.command()
def methods(
    name: Annotated[str | None, Argument(help="Show this method in full.")] = None, *, as_json: AsJson = False
) -> None:
    """List the selection methods, or show one in full."""
    from prune4rel.cli.tables import print_entry, print_json, print_list
    from prune4rel.methods import get, list_methods

    def yes(told: bool) -> str:
        return "yes" if told else "no"

    if name is not None:
        method = get(name)
        about = (
            f"needs: {', '.join(['labels', *method.needs])}",
            f"balanced: {yes(method.balances)}   seeded: {yes(method.seeded)}",
            f"cost: {method.cost}",
        )
        print_entry(method.name, method.run, method.options, about=about, **{"from": method.citation})
        return
    if as_json:
        entries = [get(each) for each in list_methods()]
        known = ("name", "needs", "balances", "seeded", "options", "summary")
        print_json([{each: getattr(one, each) for each in known} for one in entries])
        return
    rows = (
        (one.name, ", ".join(one.needs) or "nothing", yes(one.balances), yes(one.seeded), one.summary)
        for one in map(get, list_methods())
    )
    print_list(("method", "needs besides labels", "balanced", "seeded", "what it does"), rows)
