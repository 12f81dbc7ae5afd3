"""``prune4rel report``: one page about one or several runs."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, echo

from prune4rel.cli import app, flags


@app.command()
def report(
    runs: Annotated[list[Path], Argument(help="Folders that `prune4rel run` wrote.")],
    *,
    output: Annotated[Path, Option("--output", "-o", help="The page.")] = Path("report.html"),
    png: Annotated[Path | None, Option(help="Write the figures into this folder, for papers.")] = None,
    pdf: Annotated[Path | None, Option(help="The same as PDF.")] = None,
    code: flags.Code = None,
    force: Annotated[bool, Option("--force", help="Replace an existing page.")] = False,
) -> None:
    """Write one self-contained HTML page about one run, or several side by side."""
    from prune4rel.cli.bar import best_progress
    from prune4rel.pipeline import collect
    from prune4rel.report import write_figures, write_report
    from prune4rel.storage import check_writable

    check_writable(output, force=force)
    stories = [collect(folder, best_progress(), code=code or ()) for folder in runs]
    write_report(stories, output, force=force)
    echo(f"The report: {output.resolve()}")
    if png is not None:
        write_figures(stories, png)
        echo(f"The figures: {png.resolve()}")
    if pdf is not None:
        write_figures(stories, pdf, kind="pdf")
        echo(f"The figures: {pdf.resolve()}")
