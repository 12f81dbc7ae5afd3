"""``prune4rel export``: the judged set with corrected labels, in the form that somebody else reads."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option, echo

from prune4rel.cli import app, flags
from prune4rel.cli.flags import read_values
from prune4rel.cli.tables import AsJson
from prune4rel.errors import InputError


@app.command()
def export(
    folder: Annotated[
        Path | None, Argument(help="What `prune4rel clean` wrote; without it, the forms there are.")
    ] = None,
    *,
    to: Annotated[str | None, Option("--to", help="The form: folder, csv, hf, ...")] = None,
    output: Annotated[Path | None, Option("--output", "-o", help="The file or folder to write.")] = None,
    issues: Annotated[
        str, Option(help="Labels believed to be wrong that nobody settled: correct, drop or keep them.")
    ] = "correct",
    files: Annotated[
        str | None, Option(help="With --to folder: copy images (unless told), or hardlink or symlink to them.")
    ] = None,
    decisions: Annotated[
        Path | None, Option(help="What people settled; decisions.jsonl in the folder unless told.")
    ] = None,
    option: Annotated[list[str] | None, Option(help="An option of the form as NAME=VALUE; repeat.")] = None,
    force: Annotated[bool, Option("--force", help="Replace what is there.")] = False,
    as_json: AsJson = False,
    quiet: flags.Quiet = False,
) -> None:
    """Write a judged set with corrected labels; the original is neither changed nor moved.

    prune4rel export cleaned --to folder -o photos-corrected

    What people decided in `prune4rel review` is put in; what they removed is left out.
    """
    from prune4rel.cli.tables import print_json, print_list
    from prune4rel.exporting import export as write
    from prune4rel.exporting import get, list_exports

    if folder is None:
        known = [get(name) for name in list_exports()]
        if as_json:
            print_json([{"name": one.name, "options": one.options, "summary": one.summary} for one in known])
            return
        rows = (
            (one.name, ", ".join(f"{key}={value}" for key, value in one.options.items()), one.summary) for one in known
        )
        print_list(("--to", "options", "what it is"), rows)
        return
    if to is None:
        raise InputError(f"say which form to write: --to {' | '.join(list_exports())}")
    if output is None:
        raise InputError("say what to write: --output PATH")
    options = read_values(option, "--option") | ({} if files is None else {"files": files})
    said = write(folder, to, output, decisions=decisions, issues=issues, force=force, **options)  # type: ignore[arg-type]
    if not quiet:
        echo("\n".join([*said, f"written to {output}"]))
