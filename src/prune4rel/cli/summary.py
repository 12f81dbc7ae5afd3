"""What a selection did, as a small table."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from prune4rel.machine import format_seconds
from prune4rel.selection import Selection


def print_summary(chosen: Selection, output: Path) -> None:
    """Print the closing table, then notes on what looks odd."""
    console = Console(highlight=False)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for name, value in _facts(chosen):
        table.add_row(name, value)
    table.add_row("written to", str(output))
    console.print(table)
    for note in chosen.notes:
        console.print(f"note: {note}", style="yellow", markup=False)


def _facts(chosen: Selection) -> list[tuple[str, str]]:
    stats: dict[str, Any] = dict(chosen.stats)
    options = chosen.options
    facts = [
        ("picked", f"{len(chosen):,} of {chosen.n:,} examples ({len(chosen) / chosen.n:.1%}), method {chosen.method}")
    ]
    settings = [str(options[name]) for name in ("preset", "gain", "similarity", "confidence") if options.get(name)]
    if settings:
        facts.append(("settings", ", ".join(settings) + f", tau = {options['tau']:g}"))
    if chosen.objective == chosen.objective:  # not NaN
        facts.append(("objective", f"{chosen.objective:,.2f} of at most {chosen.n:,}"))
    if "mean_degree" in stats:
        about = "about " if stats.get("degrees_estimated") else ""
        facts.append(("neighbours", f"{about}{stats['mean_degree']:.1f} an example; {stats['isolated']:.1%} have none"))
        facts.append(("zero-gain picks", f"{stats['zero_gain_picks']:.1%}"))
    counts = stats["class_counts"]
    if len(counts) > 1:
        facts.append(("picks a class", f"{min(counts):,} to {max(counts):,} over {len(counts)} classes"))
    seconds = stats["seconds"]
    parts = ", ".join(f"{name} {format_seconds(value)}" for name, value in seconds.items() if name != "total")
    facts.append(("time", f"{format_seconds(seconds['total'])}" + (f" ({parts})" if parts else "")))
    return facts
