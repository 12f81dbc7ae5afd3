"""``prune4rel warmup``: a data set in, signals out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option, echo

from prune4rel.cli import app, flags
from prune4rel.cli.flags import takes
from prune4rel.errors import InputError
from prune4rel.steps.warm_up import EXTRA_NAMES, WarmUpOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prune4rel.signals import Signals

OUTPUT = "Output"


@app.command()
@takes(WarmUpOptions, without=("learners", "seeds", "seed", "warmup_learner", "extras"))
def warmup(
    *,
    given: dict[str, Any],
    learner: flags.LearnerName = "sop+",
    seed: flags.Seed = 0,
    extra: Annotated[
        list[str] | None,
        Option(
            help=f"Provide this, too: {EXTRA_NAMES}; repeat.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="A folder, or NAME.npz, .safetensors or .parquet.", rich_help_panel=OUTPUT),
    ] = None,
    shard_rows: Annotated[
        int | None,
        Option(help="Write Parquet shards of so many examples into the folder, holding one.", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing output.", rich_help_panel=OUTPUT)] = False,
    restart: Annotated[
        bool, Option("--restart", help="Begin anew, whatever an interrupted warm-up left.", rich_help_panel=OUTPUT)
    ] = False,
    save_every: flags.SaveEvery = 60.0,
    quiet: flags.Quiet = False,
) -> None:
    """Train briefly on everything and write down what the model makes of every example.

    prune4rel warmup --dataset cifar10n --data DIR --option noise=worst -o signals

    The result is what `prune4rel select --signals` takes. Killed and run again, it goes on where it stopped.
    """
    import shutil
    from contextlib import nullcontext

    from prune4rel.cli.bar import best_progress
    from prune4rel.lock import only_one
    from prune4rel.progress import Progress
    from prune4rel.storage import check_writable
    from prune4rel.training.distributed import join
    from prune4rel.training.warmup import warm_up_in_parts

    if output is None:
        raise InputError("say where the signals should go: --output FOLDER (or NAME.npz, .safetensors, .parquet)")
    flags.require_data(given, "warmup")
    if shard_rows is not None and (shard_rows < 1 or output.suffix):
        raise InputError("--shard-rows takes a number of at least 1, and an --output without suffix: a folder")
    own = {learner: given.pop("learner_options", {})}
    extras = tuple(name.replace("-", "_") for name in extra or ())
    options = WarmUpOptions(**given, learners=(learner,), learner_options=own, seed=seed, extras=extras)
    with join(options.device) as (ranks, own_device):
        check_writable(output, force=force)
        loaded = flags.open_dataset(options)
        work = output.with_name(f".{output.name}.warmup")
        with only_one(work) if ranks.rank == 0 else nullcontext():
            parts = warm_up_in_parts(
                loaded,
                rows=shard_rows or len(loaded.train),
                plan=options.warm_up_plan(options.plan(loaded, learner)),
                extras=options.extras,
                view=options.view,  # type: ignore[arg-type]
                views=options.views,
                repeats=options.repeats,
                device=own_device,
                ranks=ranks,
                folder=work,
                save_every=save_every,
                restart=restart,
                progress=Progress() if quiet else best_progress(),
            )
            names = _save(parts, output, sharded=shard_rows is not None, force=force, writes=ranks.rank == 0)
            if ranks.rank == 0:
                shutil.rmtree(work, ignore_errors=True)
        if not quiet and ranks.rank == 0:
            echo(f"signals of {len(loaded.train):,} examples ({', '.join(names)}) written to {output}")


def _save(parts: "Iterator[Signals]", output: Path, *, sharded: bool, force: bool, writes: bool) -> list[str]:
    """Write signals as they come, and return the names of their arrays; ranks that do not write only go along."""
    from prune4rel.signal_shards import write_signals
    from prune4rel.storage import write_whole

    names: list[str] = []

    def watched() -> "Iterator[Signals]":
        for part in parts:
            names[:] = list(part.arrays())
            yield part

    if not writes:
        for _ in watched():
            pass
    elif sharded:
        write_whole(output, lambda place: write_signals(place, watched()), force=force)
    else:
        for whole in watched():
            whole.save(output, force=force)
    return names
