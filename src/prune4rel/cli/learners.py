"""``prune4rel learners``: which there are, and what they take."""

from typing import Annotated

from typer import Argument

from prune4rel.cli import app
from prune4rel.cli.tables import AsJson


@app.command()
def learners(
    name: Annotated[str | None, Argument(help="Show this learner in full.")] = None, *, as_json: AsJson = False
) -> None:
    """List the learners, or show one in full."""
    from prune4rel.cli.tables import print_entry, print_json, print_list
    from prune4rel.learners import get, list_learners

    if name is not None:
        entry = get(name)
        print_entry(entry.name, entry.kind, entry.options, **{"from": entry.citation or ""})
        return
    if as_json:
        entries = map(get, list_learners())
        print_json([{"name": one.name, "options": one.options, "summary": one.summary} for one in entries])
        return
    rows = ((entry.name, entry.summary, ", ".join(entry.options)) for entry in map(get, list_learners()))
    print_list(("learner", "what it does", "options"), rows, "One in full: prune4rel learners NAME")
