"""``prune4rel noise``: labels in, labels with an exact share of wrong ones out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from prune4rel.cli import app, flags

if TYPE_CHECKING:
    from numpy.typing import NDArray


@app.command()
def noise(
    *,
    labels: Annotated[Path, Option(help="(n,) true labels: integers or class names.")],
    kind: Annotated[
        str,
        Option(
            help="symmetric, symmetric-inclusive, asymmetric-next, asymmetric-cifar10, asymmetric-cifar10-official, "
            "asymmetric-cifar100, pair-flip or instance."
        ),
    ] = "symmetric",
    rate: Annotated[float, Option(help="Share of the labels to make wrong, 0 to 1.")],
    output: Annotated[
        Path,
        Option("--output", "-o", help="NAME.npy for the labels alone; .npz, .safetensors or .parquet holds both."),
    ],
    seed: Annotated[int, Option(help="Same seed, same noise.")] = 0,
    classes: Annotated[int | None, Option(help="Number of classes (the largest label + 1).")] = None,
    features: Annotated[Path | None, Option(help="(n, d) numbers that the kind instance depends on.")] = None,
    overall: Annotated[
        bool, Option("--overall", help="The exact share of the whole, rather than of every class.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Write labels with an exact share of wrong ones, for a study of your own.

    prune4rel noise --labels y.npy --kind symmetric --rate 0.4 --seed 0 -o noisy.npy
    """
    import numpy as np
    import typer

    from prune4rel.data.classes import number_classes
    from prune4rel.errors import InputError
    from prune4rel.noise import make_noise
    from prune4rel.storage import check_writable, read_array, write_arrays, write_whole

    check_writable(output, force=force, keep=[labels, features])
    given = read_array(labels, "labels")
    numbers, names = number_classes(given, f"{labels}: labels")
    if classes is not None and classes < len(names):
        raise InputError(f"--classes is {classes}, but {labels} has {len(names)} classes")
    if given.dtype.kind == "U" and classes is not None and classes != len(names):
        raise InputError(f"--classes is {classes}, but only {len(names)} classes have a name in {labels}")
    with flags.naming({} if features is None else {"features": features}):
        noisy = make_noise(
            numbers,
            kind,
            rate,
            features=None if features is None else read_array(features, "features"),
            n_classes=classes or len(names),
            per_class=not overall,
            seed=seed,
        )
    named = names != tuple(map(str, range(len(names))))
    result, clean = (np.array(names)[noisy], given) if named else (noisy, numbers)
    if output.suffix == ".npy":
        write_whole(output, lambda part: _save(part, result), force=force)
    else:
        write_arrays(output, {"labels": result, "clean_labels": np.asarray(clean)}, force=force)
    wrong = int((noisy != numbers).sum())
    typer.echo(f"{wrong:,} of {len(noisy):,} labels are wrong now ({wrong / len(noisy):.2%}); written to {output}")


def _save(part: Path, labels: "NDArray[Any]") -> None:
    import numpy as np

    with part.open("wb") as file:
        np.save(file, labels, allow_pickle=False)
