"""The tables that commands print: what there is, facts by name, and what a selection or a run came to."""

import inspect
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from prune4rel.machine import format_seconds

if TYPE_CHECKING:
    from prune4rel.cleaning import Cleaned
    from prune4rel.pipeline.collect import Findings
    from prune4rel.report.story import Group
    from prune4rel.selection import Selection

WIDE = 200
LEGEND_WIDTH = 80
MOST_PAIRS = 3

MEANING = {
    "accuracy": "on the test split, after the last epoch",
    "noise": "wrong labels among those trained on",
    "relabelled": "share of all training labels the model gets right",
    "found": "wrong labels of the whole set, by average precision (at best 1)",
    "steps": "of the optimiser, warm-up and looking at examples included",
}


AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON.")]


def print_json(value: object) -> None:
    """Print a JSON value for programs."""
    import json
    import sys

    plain = "utf" not in (sys.stdout.encoding or "").lower()
    typer.echo(json.dumps(value, indent=1, ensure_ascii=plain))


def wide_console() -> Console:
    """Return where wide tables go: a terminal as it is, or a file, which can be as wide as it takes."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)


def table_of(titles: Iterable[str], rows: Iterable[Iterable[str]], *, right: Collection[str] = ()) -> Table:
    """Lay rows out below their titles; some columns, such as numbers, end at the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def print_facts(facts: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> None:
    """Print names, dim, and values beside them; then notes on what looks odd."""
    console = Console(highlight=False)
    table = table_of(("", ""), facts)
    table.show_header, table.columns[0].style = False, "dim"
    console.print(table)
    for note in notes:
        console.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)


def print_list(
    titles: Iterable[str], rows: Iterable[Iterable[str]], hint: str = "", *, right: Collection[str] = ()
) -> None:
    """Print what there is, one a row, and how to see more."""
    console = Console(highlight=False)
    console.print(table_of(titles, rows, right=right))
    if hint:
        console.print(f"\n{hint}", soft_wrap=True)


def print_entry(
    name: str, made_by: object, options: Mapping[str, Any], *, about: Iterable[str] = (), **origin: str
) -> None:
    """Print one thing in full: its docstring, lines about it, its options, and where it comes from."""
    console = Console(highlight=False)
    console.print(name, style="bold")
    console.print((inspect.getdoc(made_by) or "").partition("Examples\n")[0].strip(), markup=False)
    console.print()
    shown = ", ".join(f"{key}={value!r}" for key, value in options.items())
    for line in (*about, shown and f"options: {shown}", *(f"{key}: {words}" for key, words in origin.items() if words)):
        if line:
            console.print(line, markup=False, soft_wrap=True)


def print_selection(chosen: "Selection", output: Path) -> None:
    """Print what a selection did, then notes on what looks odd."""
    print_facts([*_facts(chosen), ("written to", str(output))], chosen.notes)


def _facts(chosen: "Selection") -> list[tuple[str, str]]:
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


def print_cleaned(found: "Cleaned", output: Path) -> None:
    """Print what is wrong with labels, which classes are mistaken for which, and what to do next."""
    from prune4rel.cleaning.write import next_commands

    console = Console(highlight=False)
    issues, n = int(found.is_label_issue.sum()), len(found)
    low, high = found.labels.about["noise_rate_interval"]
    rate = found.labels.noise_rate
    wrong = "nothing can be said" if rate is None else f"about {rate:.1%} of the labels"
    if None not in (rate, low, high):
        wrong += f" (between {low:.1%} and {high:.1%})"
    changed = int((found.corrected_label != found.labels.given_label).sum())
    suspicious = f"{issues:,} of {n:,} labels ({issues / n:.1%}); for {changed:,} of them another is likelier"
    facts = [("wrong", wrong), ("suspicious", suspicious)]
    if pairs := found.worst_pairs[:MOST_PAIRS]:
        facts.append(("mostly", "; ".join(f"{given} should be {now} ({times:,})" for given, now, times in pairs)))
    if found.duplicates is not None and len(found.duplicates):
        copies = found.duplicates
        contradicting = len(set(copies.group[copies.contradicting].tolist()))
        told = f"{len(copies):,} groups, {contradicting:,} with contradicting labels"
        shared = len(copies.in_test)
        facts.append(
            ("copies", told + (f"; {shared:,} training examples lie in the test split, too" if shared else ""))
        )
    if len(found.unlike):
        facts.append(("unlike all others", f"{len(found.unlike):,} examples"))
    if found.consensus is not None:
        worst = int(found.consensus.quality.argmin())
        told = f"{len(found.annotators):,}, by {found.consensus.way}; the least reliable is {found.annotators[worst]}"
        facts.append(("annotators", f"{told} ({found.consensus.quality[worst]:.0%} right)"))
    facts += [("time", format_seconds(sum(found.seconds.values()))), ("written to", str(output))]
    print_facts(facts, found.notes)
    for what, command in next_commands(output):
        console.print(f"{what}\n  {command}", markup=False, soft_wrap=True)


def print_run(found: "Findings") -> None:
    """Print accuracy, time and noise of every method, and training on everything to compare with."""
    from prune4rel.report.story import groups_of

    console = wide_console()
    groups, equal = groups_of(found.cells), found.story.steps is not None
    learners = list(dict.fromkeys(group.learner for group in groups))
    several_ratios = len({group.ratio for group in groups if group.ratio < 1}) > 1
    numbers = {id(group): _numbers(group, equal=equal) for group in groups}
    shown = [title for title in numbers[id(groups[0])] if any(one[title] for one in numbers.values())]
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("trained on", overflow="fold")
    for title in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for learner in learners:
        table.add_row(f"[bold]{escape(learner)}[/bold]")
        for group in groups:
            if group.learner == learner:
                ratio = f", {group.ratio:g}" if several_ratios and group.ratio < 1 else ""
                table.add_row(f"  {escape(group.label)}{ratio}", *(numbers[id(group)][title] for title in shown))
    console.print(table)
    if legend := "; ".join(f"{title}: {MEANING[title]}" for title in shown if title in MEANING):
        console.print(fill(legend, LEGEND_WIDTH), style="dim")
    if seeds := max(len(group.cells) for group in groups) - 1:
        console.print(f"means over {seeds + 1} seeds, ± their standard deviation", style="dim")
    for learner in () if equal else learners:
        _print_time_of_everything(console, found, learner)


def _print_time_of_everything(console: Console, found: "Findings", learner: str) -> None:
    from prune4rel.pipeline.collect import seconds_of_everything

    whole = seconds_of_everything(found.cells, learner, found.story.n)
    if whole is None:
        return
    seconds, measured = whole
    verb = "took" if measured else "would take about"
    how = "" if measured else " (scaled up)"
    words = f"Training {learner} on everything {verb} {format_seconds(seconds)}{how}."
    console.print(words, style="dim", markup=False)


def _numbers(group: "Group", *, equal: bool) -> dict[str, str]:
    """Return what stands in each column, with equal steps or without; nothing where it is not known."""
    spread, found, steps = group.spread("test_accuracy"), group.mean("wrong_label_ap"), group.mean("steps")
    times = {step: group.seconds(step) for step in ("warmup", "selection", "training")}
    shown = {
        "accuracy": _percent(group.mean("test_accuracy")) + ("" if spread is None else f" ± {100 * spread:.1f}"),
        "noise": _percent(group.mean("subset_noise")),
        "relabelled": _percent(group.mean("relabel_accuracy")),
        "found": "" if found is None else f"{found:.3f}",
    }
    if equal:
        in_all = format_seconds(sum(times.values()))
        return {**shown, "steps": "" if steps is None else f"{steps:,.0f}", "time": in_all}
    before = {"warm-up": times["warmup"], "select": times["selection"]}
    told = {title: format_seconds(seconds) if seconds else "" for title, seconds in before.items()}
    return {**shown, **told, "train": format_seconds(times["training"])}


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
