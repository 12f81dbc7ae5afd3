"""Tables: CSV for anything, and Parquet as the Hugging Face hub has it, images inside."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from prune4rel.atomic import defuse
from prune4rel.data import Split
from prune4rel.errors import InputError
from prune4rel.exporting.by_class import content_of
from prune4rel.exporting.form import Corrected, register_export

Rows = NDArray[np.int64]


@register_export("csv")
def write_csv(corrected: Corrected, place: Path, *, raw: bool = False) -> None:
    """Table of paths or texts with their right label, the given one, and what was found out.

    Columns: id, path or text, label, given_label, label_score, is_label_issue, verified, split.

    Parameters
    ----------
    raw
        Leave cells that a spreadsheet takes for formulas as they are; else they have an apostrophe before them, and a
        text that begins with ``=``, ``+``, ``-`` or ``@`` is read with it.
    """
    if not isinstance(raw, bool):
        raise InputError(f"raw: must be true or false, not {raw!r}", "raw")
    safe = (lambda cell: cell) if raw else defuse
    labels, names = corrected.labels, corrected.labels.class_names
    splits = {} if corrected.dataset is None else corrected.dataset.splits()
    kind = None if corrected.train is None else corrected.train.kind
    content = {"files": "path", "texts": "text"}.get(kind or "")
    ids = labels.ids
    with place.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        own = ["given_label", "label_score", "is_label_issue", "verified"]
        out.writerow(["id", *([content] if content else []), "label", *own, *(["split"] if "test" in splits else [])])
        for title, rows, new in corrected.parts():
            if title == "test" and content is None:
                continue  # arrays have no place in a table
            for row, label in zip(rows.tolist(), new.tolist(), strict=True):
                split = splits.get(title)
                shown = [] if split is None or content is None else [_shown(split, row)]
                if title == "train":
                    verified = labels.verified is not None and bool(labels.verified[row])
                    told = [names[labels.given_label[row]], f"{labels.label_score[row]:.6g}"]
                    told += [_word(value=bool(labels.is_label_issue[row])), _word(value=verified)]
                    name = row if ids is None else ids[row]
                else:
                    told, name = [names[label], "", "", ""], f"test-{row}"
                last = [title] if "test" in splits else []
                out.writerow(map(safe, [str(name), *shown, names[label], *told, *last]))


def _word(*, value: bool) -> str:
    return "true" if value else "false"


def _shown(split: Split, row: int) -> str:
    if split.files is None:
        return "" if split.texts is None else split.texts[row]
    file = split.files[row]
    return str(file.resolve() if isinstance(file, Path) else file)


@register_export("hf")
def write_parquet_set(corrected: Corrected, place: Path) -> None:
    """Folder of Parquet files that `datasets.load_dataset` reads, images or texts inside, names of classes too.

    Needs no further package. Columns: image, text or embedding; label and given_label (classes), id.
    """
    split = corrected.need("files", "images", "texts", "features")
    dataset, names = corrected.dataset, list(corrected.labels.class_names)
    if dataset is None:
        raise AssertionError("checked by need")
    content, kind, feature = _content(split)
    classes = {"names": names, "_type": "ClassLabel"}
    features = {content: feature, "label": classes, "given_label": classes, "id": _plain("string")}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    fields = [(content, kind), ("label", pa.int64()), ("given_label", pa.int64()), ("id", pa.string())]
    schema = pa.schema(fields, metadata=metadata)
    (place / "data").mkdir(parents=True)
    splits, writers = dataset.splits(), {}
    try:
        for title, rows, new in corrected.parts():
            if title not in writers:
                file = place / "data" / f"{title}-00000-of-00001.parquet"
                writers[title] = pq.ParquetWriter(file, schema, write_page_checksum=True)
            given = corrected.labels.given_label[rows] if title == "train" else new
            ids = corrected.labels.ids if title == "train" else None
            told = [str(row if ids is None else ids[row]) for row in rows.tolist()]
            columns = [
                pa.array(list(_values(splits[title], rows)), kind),
                pa.array(new),
                pa.array(given),
                pa.array(told),
            ]
            writers[title].write_table(pa.table(columns, schema=schema))
    finally:
        for writer in writers.values():
            writer.close()


def _content(split: Split) -> tuple[str, pa.DataType, dict[str, Any]]:
    """Return what the column of examples is called, its type, and how the library datasets calls that."""
    if split.texts is not None:
        return "text", pa.string(), _plain("string")
    if split.features is not None:
        d = int(split.features.shape[1])
        return "embedding", pa.list_(pa.float32(), d), {"feature": _plain("float32"), "length": d, "_type": "List"}
    return "image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]), {"_type": "Image"}


def _plain(kind: str) -> dict[str, Any]:
    return {"dtype": kind, "_type": "Value"}


def _values(split: Split, rows: Rows) -> Iterator[Any]:
    for row in rows.tolist():
        if split.texts is not None:
            yield split.texts[row]
        elif split.features is not None:
            yield split.features[row].tolist()
        else:
            name = None if split.files is None else str(split.files[row]).rpartition("/")[2]
            yield {"bytes": content_of(split, row), "path": name}
