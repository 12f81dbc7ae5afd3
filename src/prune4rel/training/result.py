"""What a training came to, and what it leaves behind: a model, and a corrected label for every example."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.errors import InputError
from prune4rel.storage import to_json, write_whole

RESULT = "result.json"
CORRECTED = "corrected_labels.parquet"


@dataclass(frozen=True)
class Result:
    """Numbers of one training. Accuracies lie between 0 and 1; None where they cannot be known.

    Parameters
    ----------
    test_accuracy
        On the test split, of the last epoch: the result.
    best_accuracy
        The best epoch that was looked at. Choosing it would be choosing by the test split; for the curious.
    relabel_accuracy
        Share of the whole training split that the model gives its true label.
    self_correction
        The same among the examples trained on whose given label is wrong.
    subset_noise
        Share of wrong labels among the examples trained on.
    labels_changed
        How many labels of the whole training split the model would change.
    size, epochs
        Examples trained on, and how often.
    seconds
        Time by step.
    history
        One entry an epoch: epoch, lr, loss, ...
    notes
        What looked odd.
    """

    test_accuracy: float | None
    best_accuracy: float | None
    relabel_accuracy: float | None
    self_correction: float | None
    subset_noise: float | None
    labels_changed: int
    size: int
    epochs: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    history: tuple[Mapping[str, float], ...] = ()
    notes: tuple[str, ...] = ()

    def accuracies(self) -> dict[str, float | None]:
        """Return the numbers a training is judged by; the best epoch is none of them."""
        names = ("test_accuracy", "relabel_accuracy", "self_correction")
        return {name: getattr(self, name) for name in names}

    def save(self, folder: Path) -> None:
        """Write `result.json` into a folder."""
        text = to_json(asdict(self), indent=1) + "\n"
        write_whole(folder / RESULT, lambda part: part.write_text(text, encoding="utf-8"), force=True)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what `save` wrote."""
        path = Path(folder) / RESULT
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            known = {each.name for each in fields(cls)}
            values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
            return cls(**{name: value for name, value in values.items() if name in known})
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; is the training finished?") from None
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"{path}: not the result of a training ({error})") from None


def corrected_table(
    probabilities: NDArray[np.float32],
    given: NDArray[np.int64],
    class_names: tuple[str, ...],
    ids: NDArray[Any] | None,
) -> pa.Table:
    """Make the table of corrected labels, a row an example of the training split.

    Parameters
    ----------
    probabilities
        (n, C) of the final model; a row of NaN (an image that could not be read) leaves the label as it is.
    given
        (n,) given labels.

    Returns
    -------
    Columns index, id (where there are ids), given_label, corrected_label, given_name, corrected_name, confidence
    (the model's probability of the corrected label) and changed.

    Examples
    --------
    >>> corrected_table(np.float32([[0.9, 0.1]]), np.array([1]), ("cat", "dog"), None).to_pylist()[0]["corrected_name"]
    'cat'
    """
    known = ~np.isnan(probabilities).any(axis=1)
    best = np.where(known, np.nan_to_num(probabilities).argmax(axis=1), given)
    confidence = np.where(known, np.nan_to_num(probabilities)[np.arange(len(best)), best], np.nan)
    names = np.array([_printable(name) for name in class_names], dtype=object)
    columns: dict[str, Any] = {"index": np.arange(len(given), dtype=np.int64)}
    if ids is not None:
        columns["id"] = [_printable(name) for name in ids.tolist()] if ids.dtype.kind == "U" else ids
    columns |= {
        "given_label": given,
        "corrected_label": best.astype(np.int64),
        "given_name": names[given].tolist(),
        "corrected_name": names[best].tolist(),
        "confidence": confidence.astype(np.float32),
        "changed": best != given,
    }
    return pa.table(columns)


def _printable(text: str) -> str:
    """Return a text as it is, but for bytes of a file name that are no text: those are written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_corrected(table: pa.Table, path: Path) -> None:
    """Write the table of corrected labels."""
    write_whole(path, lambda part: pq.write_table(table, part), force=True)
