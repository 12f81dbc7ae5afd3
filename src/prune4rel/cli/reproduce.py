"""``prune4rel reproduce``: the paper's tables and figures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import takes
from prune4rel.errors import InputError
from prune4rel.steps import StepOptions

if TYPE_CHECKING:
    from rich.console import Console

    from prune4rel.recipes import Plan, Recipe, Reproduction

WHICH, HOW, WHERE = "Which cells", "How", "Output"


@app.command()
@takes(StepOptions, only=("seed", "parallel", "device", "epochs", "steps", "warmup_epochs", "rounds", "training"))
def reproduce(
    name: Annotated[
        str | None, Argument(help="table1 ... table6, fig1a, fig2, fig3a, fig3b, fig3c, fig4 or budgets.")
    ] = None,
    *,
    given: dict[str, Any],
    every: Annotated[bool, Option("--list", help="Show all recipes and what they take.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the cells and what they take; run nothing.")] = False,
    smoke: Annotated[
        bool, Option("--smoke", help="The same on tiny stand-ins, on the CPU: to see that everything runs.")
    ] = False,
    no_run: Annotated[bool, Option("--no-run", help="Only compare what is finished.", rich_help_panel=HOW)] = False,
    data: Annotated[
        Path | None, Option(help="Folder of the data, or of a folder a data set.", rich_help_panel=HOW)
    ] = None,
    dataset: Annotated[str, Option(help="Only these, with commas between.", rich_help_panel=WHICH)] = "",
    noise: Annotated[str, Option(help="Only these: random, worst, noisy, ...", rich_help_panel=WHICH)] = "",
    learner: Annotated[str, Option(help="Only these.", rich_help_panel=WHICH)] = "",
    method: Annotated[str, Option(help="Only these.", rich_help_panel=WHICH)] = "",
    ratio: Annotated[str, Option(help="Only these.", rich_help_panel=WHICH)] = "",
    ours: Annotated[
        bool | None,
        Option("--ours/--no-ours", help="Run our presets beside the paper's methods.", rich_help_panel=WHICH),
    ] = None,
    seeds: Annotated[int | None, Option(help="How many repeats; 3, or 1 with --smoke.", rich_help_panel=HOW)] = None,
    images_per_second: Annotated[
        float | None, Option(help="For the estimate: of all trainings together.", rich_help_panel=HOW)
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="The folder of all recipes.", rich_help_panel=WHERE)
    ] = None,
    archive: Annotated[
        Path | None,
        Option(help="Keep what is finished there as small files; count in what it holds.", rich_help_panel=WHERE),
    ] = None,
    quiet: flags.Quiet = False,
) -> None:
    """Run a table or figure of the paper again, and compare; `budgets` is ours: the same number of steps for all.

    prune4rel reproduce table1 --data DIR -o reproduced --noise worst --ratio 0.2 --parallel 5

    Killed and run again, it goes on. Recipes with the same folder share warm-ups, selections and trainings. The folder
    gets NAME/comparison.md, NAME/comparison.csv and NAME/report.html.
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.tables import wide_console
    from prune4rel.progress import Progress
    from prune4rel.recipes import RECIPES, Settings, Wanted, estimate, make_plan, make_smoke_plan
    from prune4rel.recipes import reproduce as reproduce_plan
    from prune4rel.recipes.catalogue import get
    from prune4rel.recipes.reproduce import SMOKE_IS_NOT_KEPT

    console = wide_console()
    if every:
        _print_list(list(RECIPES.values()), images_per_second)
        return
    if name is None:
        raise InputError("which one? prune4rel reproduce NAME; prune4rel reproduce --list shows them all")
    get(name)
    ratios = tuple(flags.read_number(word, "--ratio") for word in _words(ratio))
    wanted = Wanted(_words(dataset), _words(noise), _words(learner), _words(method), ratios)
    how = Settings(data=data, seeds=seeds if seeds is not None else 1 if smoke else 3, options=given)
    if dry_run:
        plan = make_plan(name, wanted, how, ours=ours)
        _print_cells(console, plan)
        console.print(estimate(plan, output, images_per_second), soft_wrap=True)
        return
    if output is None:
        raise InputError("say where everything should go: --output FOLDER")
    if smoke and archive is not None:
        raise InputError(SMOKE_IS_NOT_KEPT)
    plan = make_smoke_plan(name, output, wanted, how, ours=ours) if smoke else make_plan(name, wanted, how, ours=ours)
    listener = Progress() if quiet else best_progress()
    done = reproduce_plan(
        plan, output, run=not no_run, archive=archive, images_per_second=images_per_second, progress=listener
    )
    if not quiet:
        _print_result(console, done)


def _print_list(recipes: "list[Recipe]", images_per_second: float | None) -> None:
    from prune4rel.cli.tables import print_list
    from prune4rel.machine import format_seconds
    from prune4rel.recipes import make_plan
    from prune4rel.recipes.jobs import rates_given, seconds_of

    numbers = ("trainings", "M images", *(["time"] if images_per_second is not None else []))
    rows = []
    for recipe in recipes:
        plan = make_plan(recipe.name)
        cost = plan.cost
        row = [recipe.name, recipe.title, ", ".join(recipe.datasets), f"{cost.trainings:,}"]
        row.append(f"{cost.all_images / 1e6:,.0f}")
        if images_per_second is not None:
            row.append(format_seconds(seconds_of(cost, rates_given(plan.jobs, images_per_second)) or 0.0))
        rows.append(row)
    hint = (
        "With 3 seeds, from scratch. M images: millions of images looked at, epochs times examples. "
        "One in full: prune4rel reproduce NAME --dry-run"
    )
    print_list(("recipe", "what it shows", "data sets", *numbers), rows, hint, right=numbers)


def _print_cells(console: "Console", plan: "Plan") -> None:
    console.print(f"{plan.recipe.name}: {plan.recipe.title}", style="bold", markup=False)
    for cell in plan.cells:
        console.print(f"  {cell}", markup=False, soft_wrap=True)
    console.print(
        f"{len(plan.cells)} cells, in the folders {', '.join(job.folder for job in plan.jobs)}", soft_wrap=True
    )


def _show(console: "Console", title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from prune4rel.cli.tables import table_of

    console.print(f"\n{title}", style="bold", markup=False)
    console.print(table_of(header, rows, right=header[1:]))


def _print_result(console: "Console", done: "Reproduction") -> None:
    from prune4rel.recipes.budgets import HEADER as BUDGET_HEADER
    from prune4rel.recipes.compare import agreement
    from prune4rel.recipes.write import BIN_HEADER, HEADER, SMOKE, Notes, bin_rows, bin_sentence, cells_of

    notes = Notes()

    for block in done.blocks:
        rows = [cells_of(block, row, notes, smoke=done.smoke) for row in block.rows]
        _show(console, block.title, HEADER[:3] if done.smoke else HEADER, rows)
        if not done.smoke and any(row.paper for row in block.rows):
            tau = block.order.tau
            said = block.order.sentence + ("" if tau is None else f" Kendall's tau is {tau:.2f}.")
            console.print(said, markup=False, style="dim")
    for title, (runs, bins) in done.bins.items():
        _show(console, f"{title}, {runs} {'training' if runs == 1 else 'trainings'}", BIN_HEADER, bin_rows(bins))
        console.print(bin_sentence(bins), style="dim")
    for table in done.budgets:
        _show(console, table.title, BUDGET_HEADER, table.rows)
    console.print()
    for line in notes.lines():
        console.print(line, markup=False, style="dim")
    if done.smoke:
        console.print(SMOKE, style="bold")
    elif done.blocks and done.recipe.printed is not None:
        console.print(agreement(done.blocks))
    console.print(f"The comparison: {done.folder.resolve()}", soft_wrap=True, markup=False)


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
