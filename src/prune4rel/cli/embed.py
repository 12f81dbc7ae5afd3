"""``prune4rel embed``: images or texts in, vectors out."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import read_values, takes
from prune4rel.cli.source import SOURCE, SourceOptions
from prune4rel.errors import InputError


@app.command()
@takes(SourceOptions)
def embed(
    source: Annotated[Path | None, Argument(help=SOURCE)] = None,
    *,
    given: dict[str, Any],
    option: Annotated[list[str] | None, Option(help="An option of the reader as NAME=VALUE; repeat.")] = None,
    device: Annotated[str, Option(help="auto, cpu or cuda.")] = "auto",
    output: Annotated[Path | None, Option("--output", "-o", help="The folder everything goes to.")] = None,
    force: Annotated[bool, Option("--force", help="Replace other embeddings there.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the estimate and stop.")] = False,
    quiet: flags.Quiet = False,
) -> None:
    """Turn images or texts into vectors that a pretrained model makes of them.

    prune4rel embed photos/ -o embeddings

    The folder holds signals (labels, embeddings, ids) in Parquet parts, which `clean`, `select` and `run` take as
    SOURCE. Killed and called again, it goes on and ends with the same bytes.
    """
    from prune4rel.cli.bar import best_progress
    from prune4rel.cli.source import encoder_for, open_source, tell_broken, write_all
    from prune4rel.cli.tables import print_facts
    from prune4rel.encoders.embedding import estimate
    from prune4rel.progress import Progress

    options = SourceOptions(**given)
    if source is None:
        raise InputError("say what to embed: prune4rel embed SOURCE -o FOLDER (a folder of images, a table, ...)")
    if output is None and not dry_run:
        raise InputError("say where the embeddings should go: --output FOLDER (or --dry-run for an estimate only)")
    opened = open_source(source, options, read_values(option, "--option"), quiet=quiet)
    encoder = encoder_for(opened.dataset, options, device, quiet=quiet)
    splits = opened.dataset.splits()
    facts = [
        (title, f"{len(split):,} {encoder.kind}, {opened.dataset.n_classes:,} classes")
        for title, split in splits.items()
    ]
    if dry_run:
        print_facts([*facts, ("estimate", estimate(opened.dataset.train, encoder))])
        return
    if output is None:
        raise AssertionError("checked above")
    listener = Progress() if quiet else best_progress()
    broken = write_all(opened.dataset, encoder, output, options, listener, force=force)
    if not quiet:
        tell_broken(broken)
        left_out = sum(map(len, broken.values()))
        print_facts(
            [
                *facts,
                *([("left out", f"{left_out:,}")] if left_out else []),
                (
                    "encoder",
                    f"{encoder.name}{encoder.digest and ', weights ' + encoder.digest[:12]}, {encoder.precision}",
                ),
                ("written to", str(output)),
                ("next", f"prune4rel clean {output} -o cleaned"),
            ]
        )
