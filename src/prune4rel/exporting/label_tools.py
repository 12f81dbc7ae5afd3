"""Forms that other label tools read: cleanlab, FiftyOne, Label Studio and Argilla."""

from pathlib import Path
from typing import Any

from prune4rel.atomic import defuse
from prune4rel.bridges import argilla_settings, label_studio_config, to_argilla, to_cleanlab, to_label_studio
from prune4rel.data import Split
from prune4rel.errors import InputError
from prune4rel.exporting.by_class import content_of
from prune4rel.exporting.form import Corrected, register_export
from prune4rel.storage import to_json


@register_export("cleanlab")
def write_cleanlab(corrected: Corrected, place: Path) -> None:
    """CSV as cleanlab's `Datalab.get_issues("label")` has it: issue, score, given and predicted label by row.

    Read it with ``pandas.read_csv(..., index_col=0)``; back with `prune4rel.bridges.from_cleanlab`.
    """
    table = to_cleanlab(corrected.labels).iloc[corrected.rows]
    for name in ("given_label", "predicted_label"):
        table[name] = table[name].map(defuse)
    table.to_csv(place)


@register_export("fiftyone")
def write_fiftyone(corrected: Corrected, place: Path) -> None:
    """Folder in FiftyOne's format FiftyOneImageClassificationDataset: labels.json, and data.json or data/.

    The label is the corrected one; the given one, the score and the issue are its attributes. Images that lie in files
    are named where they lie, in data.json: load it with ``data_path="data.json"``. Others are written into data/.
    """
    split, labels = corrected.need("files", "images"), corrected.labels
    names = labels.class_names
    place.mkdir(parents=True, exist_ok=True)
    paths, entries = {}, {}
    for row, label in zip(corrected.rows.tolist(), corrected.new_label.tolist(), strict=True):
        key = f"{row:08d}"
        paths[key] = _path_of(split, row, place / "data" / f"{key}.png")
        entries[key] = {
            "label": names[label],
            "confidence": float(labels.confidence[row]),
            "attributes": {
                "given_label": names[labels.given_label[row]],
                "label_score": float(labels.label_score[row]),
                "is_label_issue": bool(labels.is_label_issue[row]),
                "example": str(row if labels.ids is None else labels.ids[row]),
            },
        }
    if all(paths.values()):
        (place / "data.json").write_text(_text(paths), encoding="utf-8")
    (place / "labels.json").write_text(_text({"classes": list(names), "labels": entries}), encoding="utf-8")


def _path_of(split: Split, row: int, target: Path) -> str:
    """Return where an image lies, or "" after it was written to `target`."""
    file = None if split.files is None else split.files[row]
    if isinstance(file, Path):
        return str(file.resolve())
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(content_of(split, row))
    return ""


@register_export("label-studio")
def write_label_studio(corrected: Corrected, place: Path, *, url: str = "/data/local-files/?d={path}") -> None:
    """Folder for Label Studio: tasks.json with predictions, the most suspicious first, and its interface config.xml.

    Annotations that come back go into labels with `prune4rel.bridges.from_label_studio`.

    Parameters
    ----------
    url
        Where Label Studio finds an image; ``{path}`` is its path. The default is that of its local storage.
    """
    kind, shown = _shown(corrected, url)
    tasks = to_label_studio(corrected.labels, shown, rows=corrected.rows)
    place.mkdir(parents=True, exist_ok=True)
    (place / "tasks.json").write_text(_text(tasks), encoding="utf-8")
    config = label_studio_config(corrected.labels.class_names, kind)
    (place / "config.xml").write_text(config + "\n", encoding="utf-8")


@register_export("argilla")
def write_argilla(corrected: Corrected, place: Path, *, url: str = "{path}") -> None:
    """Folder for Argilla: records.json with suggestions, the most suspicious first, and settings.json.

    Answers that come back go into labels with `prune4rel.bridges.from_argilla`.

    Parameters
    ----------
    url
        Where Argilla finds an image; ``{path}`` is its path.
    """
    kind, shown = _shown(corrected, url)
    records = to_argilla(corrected.labels, shown, rows=corrected.rows)
    place.mkdir(parents=True, exist_ok=True)
    (place / "records.json").write_text(_text(records), encoding="utf-8")
    settings = argilla_settings(corrected.labels.class_names, kind)
    (place / "settings.json").write_text(_text(settings), encoding="utf-8")


def _text(value: Any) -> str:
    return to_json(value, indent=1) + "\n"


def _shown(corrected: Corrected, url: str) -> tuple[str, list[dict[str, Any]]]:
    """Return what examples are, and what is shown of each that is written."""
    split = corrected.need("files", "texts")
    rows = corrected.rows.tolist()
    if split.texts is not None:
        return "text", [{"text": split.texts[row]} for row in rows]
    if "{path}" not in url:
        raise InputError(f"url: {url!r} does not say where the path goes; write {{path}} there", "url")
    files = [] if split.files is None else [split.files[row] for row in rows]
    if not all(isinstance(file, Path) for file in files):
        raise InputError("these images lie in no files of their own, which the tool could show", "to")
    return "image", [{"image": url.replace("{path}", str(Path(str(file)).resolve()))} for file in files]
