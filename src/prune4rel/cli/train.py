"""``prune4rel train``: a data set and a subset in, a model and corrected labels out."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from prune4rel.cli import app, flags
from prune4rel.cli.flags import takes
from prune4rel.errors import InputError
from prune4rel.steps.data import DATA
from prune4rel.steps.model import MODEL, TRUST, ModelOptions

if TYPE_CHECKING:
    from prune4rel.training import Result

OUTPUT = "Output"


@app.command()
@takes(ModelOptions, without=("learners", "seeds", "seed"))
def train(
    *,
    given: dict[str, Any],
    subset: Annotated[
        Path | None,
        Option(help="A saved selection (.parquet) or indices (.npy); everything if left out.", rich_help_panel=DATA),
    ] = None,
    learner: Annotated[
        str | None,
        Option(
            help="See `prune4rel learners`; unless told trust on everything, sop+ on a subset, logistic on features.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: flags.Seed = 0,
    track: Annotated[
        list[str] | None, Option(help="tensorboard, mlflow or wandb; repeat.", rich_help_panel=OUTPUT)
    ] = None,
    evaluate_every: Annotated[
        int | None, Option(help="Epochs between looks at the test split.", rich_help_panel=OUTPUT)
    ] = None,
    save_every: flags.SaveEvery = 60.0,
    output: flags.FolderOutput = None,
    restart: Annotated[bool, Option("--restart", help="Begin anew in that folder.", rich_help_panel=OUTPUT)] = False,
    quiet: flags.Quiet = False,
) -> None:
    """Train a noise-robust learner on everything, or on a subset; correct the labels of the whole training set.

    prune4rel train --dataset cifar10n --data DIR --option noise=worst -o run, perhaps with --subset subset.parquet

    Killed and run again, it goes on where it stopped. The folder gets the model (model.safetensors),
    corrected_labels.parquet for every training example, metrics.jsonl and result.json.

    In several processes: torchrun --nproc-per-node 4 -m prune4rel train ...
    """
    from prune4rel import training
    from prune4rel.cli.bar import best_progress
    from prune4rel.progress import Progress
    from prune4rel.training.distributed import join

    if output is None:
        raise InputError("say where the model should go: --output FOLDER")
    flags.require_data(given, "train")
    own = given.pop("learner_options", {})
    options = ModelOptions(**given, seed=seed)
    with join(options.device) as (ranks, own_device):
        loaded = flags.open_dataset(options)
        learner = learner or training.usual_learner(loaded.kind, options.network, whole=subset is None)
        if options.trust_by is not None and learner != TRUST:
            raise InputError(f"--trust-by is for --learner {TRUST}, not {learner}", "trust_by")
        options = replace(options, learners=(learner,), learner_options={learner: own})
        if not quiet and ranks.rank == 0:
            flags.tell_settled_of(options)
        result = training.train(
            loaded,
            _read_subset(subset, len(loaded.train)),
            folder=output,
            plan=options.plan(loaded, learner),
            device=own_device,
            ranks=ranks,
            evaluate_every=evaluate_every,
            save_every=save_every,
            restart=restart,
            track=tuple(track or ()),
            progress=Progress() if quiet else best_progress(),
        )
        if not quiet and ranks.rank == 0:
            _print_result(result, output)


def _read_subset(path: Path | None, n: int) -> Any:
    from prune4rel.selection import Selection
    from prune4rel.storage import read_array

    if path is None:
        return None
    if path.suffix != ".parquet":
        return read_array(path, "subset")
    chosen = Selection.load(path)
    if chosen.n != n:
        raise InputError(f"{path}: was chosen from {chosen.n} examples, but the data set has {n}; it is another one")
    return chosen.indices


def _print_result(result: "Result", output: Path) -> None:
    from prune4rel.cli.tables import print_facts
    from prune4rel.machine import format_seconds

    shares = {
        "test accuracy, last epoch": result.test_accuracy,
        "(best epoch, chosen by the test split)": result.best_accuracy,
        "training set relabelled right": result.relabel_accuracy,
        "wrong labels trained on that were corrected": result.self_correction,
        "wrong labels in the subset": result.subset_noise,
    }
    facts = [("trained on", f"{result.size:,} examples, {result.epochs} epochs")]
    facts += [(name, f"{value:.2%}") for name, value in shares.items() if value is not None]
    if result.wrong_label_ap is not None:
        facts.append(("wrong labels found, average precision", f"{result.wrong_label_ap:.3f}"))
    spent = ", ".join(f"{name} {format_seconds(seconds)}" for name, seconds in result.seconds.items())
    facts += [("labels corrected", f"{result.labels_changed:,}"), ("time", spent), ("written to", str(output))]
    print_facts(facts, result.notes)
