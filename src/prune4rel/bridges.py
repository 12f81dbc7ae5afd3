"""`Labels` to and from the forms of other tools: cleanlab, FiftyOne, Label Studio, Argilla, Hugging Face datasets.

Nothing of these tools is needed here: what goes over are frames, lists of plain records, and columns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prune4rel.errors import InputError
from prune4rel.labels import UNDECIDED, Labels
from prune4rel.reading import read_json

if TYPE_CHECKING:
    from pandas import DataFrame

AGENT = "prune4rel"
QUESTION = "label"
ROW = "row"
"""Under this name every record says which example it is."""

Records = list[dict[str, Any]]


def to_cleanlab(labels: Labels) -> "DataFrame":
    """Return what `Datalab.get_issues("label")` of cleanlab returns: one row an example, classes by name.

    Examples
    --------
    >>> to_cleanlab(_example()).columns.tolist()
    ['is_label_issue', 'label_score', 'given_label', 'predicted_label']
    """
    from pandas import DataFrame  # noqa: PLC0415 - not everybody has it

    names = np.array(labels.class_names)
    return DataFrame(
        {
            "is_label_issue": labels.is_label_issue,
            "label_score": labels.label_score,
            "given_label": names[labels.given_label],
            "predicted_label": names[labels.predicted_label],
        }
    )


def from_cleanlab(issues: Any, *, class_names: Sequence[str] | None = None, ids: ArrayLike | None = None) -> Labels:
    """Make `Labels` of a `Datalab` that has looked for label issues, or of the frame `get_issues("label")`.

    cleanlab says how well the given label fits, and not how sure it is of another: `confidence` is the score where the
    prediction is the given label, and what is left of 1 where it is not, the most it can be.

    Parameters
    ----------
    issues
        The `Datalab`, or its frame.
    class_names
        C names in the order of their numbers; those that occur, sorted, unless told.
    ids
        (n,) your own names of the examples.

    Examples
    --------
    >>> again = from_cleanlab(to_cleanlab(_example()))
    >>> again.class_names, again.is_label_issue
    (('cat', 'dog'), array([False,  True, False]))
    """
    matrix = None
    if hasattr(issues, "get_issues"):
        info = issues.get_info("label")
        known = info.get("class_names")
        known = known.tolist() if hasattr(known, "tolist") else known
        class_names = class_names or (None if known is None else [str(name) for name in known])
        if info.get("noise_matrix") is not None:
            matrix = np.asarray(info["noise_matrix"]).T  # theirs is [given, true]
        issues = issues.get_issues("label")
    if missing := {"is_label_issue", "label_score", "given_label", "predicted_label"} - set(issues.columns):
        raise InputError(f"the frame has no column {min(missing)!r}: pass Datalab.get_issues('label')")
    given, predicted = ([str(name) for name in issues[column]] for column in ("given_label", "predicted_label"))
    names = tuple(sorted({*given, *predicted})) if class_names is None else tuple(map(str, class_names))
    if matrix is not None and matrix.shape != (len(names), len(names)):
        matrix = None
    score = np.clip(issues["label_score"].to_numpy(dtype=np.float64), 0, 1)
    numbers, suggested = _numbers(given, names), _numbers(predicted, names)
    issue = issues["is_label_issue"].to_numpy(dtype=bool)
    return Labels(
        given_label=numbers,
        predicted_label=suggested,
        label_score=score,
        is_label_issue=issue,
        confidence=np.where(suggested == numbers, score, 1 - score),
        class_names=names,
        ids=None if ids is None else np.asarray(ids),
        source="cleanlab",
        noise_rate=float(issue.mean()),
        noise_matrix=matrix,
        about={"made_by": "cleanlab"},
    )


def to_fiftyone(labels: Labels, samples: Any = None, *, field: str = AGENT) -> dict[str, list[Any]]:
    """Return fields for samples of FiftyOne, in their order; set them where a dataset or view of n samples is given.

    Parameters
    ----------
    labels
        Of the samples.
    samples
        A `fiftyone.Dataset` or view; its fields are set with `set_values`.
    field
        The prediction, a `Classification`; ``FIELD_score``, ``FIELD_issue``, ``FIELD_corrected`` and ``FIELD_verified``
        stand beside it.

    Examples
    --------
    >>> to_fiftyone(_example())["prune4rel"][1]
    {'label': 'cat', 'confidence': 0.7}
    """
    names, corrected = labels.class_names, labels.corrected_label
    said = zip(labels.predicted_label.tolist(), labels.confidence.tolist(), strict=True)
    fields: dict[str, list[Any]] = {
        field: [{"label": names[label], "confidence": sure} for label, sure in said],
        f"{field}_score": labels.label_score.tolist(),
        f"{field}_issue": labels.is_label_issue.tolist(),
        f"{field}_corrected": [names[label] for label in corrected.tolist()],
        f"{field}_verified": [False] * len(labels) if labels.verified is None else labels.verified.tolist(),
    }
    if samples is not None:
        classification = import_module("fiftyone").Classification
        if len(samples) != len(labels):
            raise InputError(f"there are {len(labels)} labels, but {len(samples)} samples", "samples")
        for name, values in fields.items():
            own = [classification(**value) for value in values] if name == field else values
            samples.set_values(name, own)
    return fields


def from_fiftyone(samples: Any, *, given: str = "ground_truth", field: str = AGENT) -> Labels:
    """Make `Labels` of samples of FiftyOne: of what `to_fiftyone` set, or of any two fields of classifications.

    Where ``FIELD_verified`` is set, ``FIELD_corrected`` is what a person decided.

    Parameters
    ----------
    samples
        A dataset or view.
    given, field
        Fields of classifications: the given labels, and predictions with their confidence.
    """
    own, said, sure = (samples.values(path) for path in (f"{given}.label", f"{field}.label", f"{field}.confidence"))
    ids = np.array([str(name) for name in samples.values("id")])
    if bad := [row for row, label in enumerate(own) if label is None]:
        raise InputError(f"sample {ids[bad[0]]} has no label in field {given!r}", "given")
    schema = samples.get_field_schema()
    decided = samples.values(f"{field}_corrected") if f"{field}_verified" in schema else []
    names = tuple(sorted({*own, *(label for label in [*said, *decided] if label is not None)}))
    numbers = _numbers(own, names)
    suggested = np.where(
        [label is None for label in said], numbers, _numbers([a or b for a, b in zip(said, own, strict=True)], names)
    )
    confidence = np.array([1.0 if value is None else value for value in sure], dtype=np.float64)
    verified = np.array(samples.values(f"{field}_verified") if decided else [], dtype=bool)
    settled = _settled(verified, _numbers(decided, names))
    if f"{field}_score" in schema:
        score = np.array(samples.values(f"{field}_score"), dtype=np.float64)
        issue = np.array(samples.values(f"{field}_issue"), dtype=bool)
    else:
        issue = suggested != numbers
        score = np.where(issue, 1 - confidence, confidence)
    return Labels(
        given_label=numbers,
        predicted_label=suggested,
        label_score=score,
        is_label_issue=issue,
        confidence=confidence,
        class_names=names,
        ids=ids,
        source="fiftyone",
        about={"made_by": "fiftyone"},
        **settled,
    )


def to_label_studio(
    labels: Labels, data: Iterable[Mapping[str, Any]], *, rows: NDArray[np.int64] | None = None
) -> Records:
    """Return tasks of Label Studio, the most suspicious first, with predictions and what is known of every label.

    What a person has settled stands there as an annotation, so that it need not be done again.

    Parameters
    ----------
    labels
        All of them.
    data
        What is shown of each of `rows`: ``{"image": url}`` or ``{"text": text}``.
    rows
        Which examples; all unless told.

    Examples
    --------
    >>> tasks = to_label_studio(_example(), [{"text": text} for text in ("purr", "meow", "woof")])
    >>> tasks[0]["data"]["text"], tasks[0]["predictions"][0]["result"][0]["value"]
    ('meow', {'choices': ['cat']})
    """
    tasks = []
    for row, shown in _worst_first(labels, data, rows):
        prediction = {"model_version": AGENT, "score": float(labels.label_score[row])}
        task: dict[str, Any] = {
            "data": {**shown, **_facts(labels, row)},
            "predictions": [{**prediction, "result": [_choice(labels, int(labels.predicted_label[row]), shown)]}],
        }
        if labels.decided_label is not None and labels.decided_label[row] != UNDECIDED:
            task["annotations"] = [{"result": [_choice(labels, int(labels.decided_label[row]), shown)]}]
        tasks.append(task)
    return tasks


def label_studio_config(class_names: Sequence[str], kind: str) -> str:
    """Return the labelling interface for such tasks, of ``"image"`` or ``"text"``.

    >>> print(label_studio_config(["cat", "dog"], "text"))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="label" toName="text" choice="single-radio" showInline="true">
        <Choice value="cat"/>
        <Choice value="dog"/>
      </Choices>
      <Header value="given: $given_label"/>
    </View>
    """
    shown = f'<Image name="image" value="${kind}"/>' if kind == "image" else f'<Text name="{kind}" value="${kind}"/>'
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in class_names)
    head = f'<Choices name="{QUESTION}" toName="{kind}" choice="single-radio" showInline="true">'
    return f'<View>\n  {shown}\n  {head}\n{choices}\n  </Choices>\n  <Header value="given: $given_label"/>\n</View>'


def from_label_studio(tasks: str | Path | Sequence[Mapping[str, Any]], labels: Labels) -> Labels:
    """Put what people annotated in Label Studio into the labels the tasks were made of.

    Parameters
    ----------
    tasks
        The export as JSON, or its path. Tasks without annotations, and those that were cancelled, settle nothing; of
        several annotations the last one counts.
    labels
        What `to_label_studio` was given.

    Examples
    --------
    >>> tasks = to_label_studio(_example(), [{"text": text} for text in ("purr", "meow", "woof")])
    >>> tasks[0]["annotations"] = [{"result": tasks[0]["predictions"][0]["result"]}]
    >>> from_label_studio(tasks, _example()).decided_label
    array([-1,  0, -1])
    """
    records = read_json(Path(tasks), "export of Label Studio") if isinstance(tasks, str | Path) else tasks
    found: dict[int, str] = {}
    for record in _list(records):
        made = [each for each in record.get("annotations") or () if not each.get("was_cancelled")]
        answers = [
            choice
            for each in made[-1:]
            for region in each.get("result") or ()
            if region.get("from_name") == QUESTION
            for choice in region.get("value", {}).get("choices", ())
        ]
        if answers:
            found[_row_of(record.get("data", {}), labels)] = answers[-1]
    return _decided(labels, found)


def _choice(labels: Labels, label: int, shown: Mapping[str, Any]) -> dict[str, Any]:
    value = {"choices": [labels.class_names[label]]}
    return {"from_name": QUESTION, "to_name": next(iter(shown)), "type": "choices", "value": value}


def to_argilla(
    labels: Labels, fields: Iterable[Mapping[str, Any]], *, rows: NDArray[np.int64] | None = None
) -> Records:
    """Return records as Argilla's `Record.from_dict` takes them, the most suspicious first, with suggestions.

    Parameters
    ----------
    labels
        All of them.
    fields
        What is shown of each of `rows`: ``{"text": text}`` or ``{"image": url}``.
    rows
        Which examples; all unless told.

    Examples
    --------
    >>> record = to_argilla(_example(), [{"text": text} for text in ("purr", "meow", "woof")])[0]
    >>> record["id"], record["suggestions"]["label"]["value"], record["metadata"]["given_label"]
    ('1', 'cat', 'dog')
    """
    return [
        {
            "id": str(row),
            "fields": dict(shown),
            "metadata": _facts(labels, row),
            "suggestions": {
                QUESTION: {
                    "value": labels.class_names[labels.predicted_label[row]],
                    "score": float(labels.confidence[row]),
                    "agent": AGENT,
                }
            },
            "responses": {},
            "vectors": {},
        }
        for row, shown in _worst_first(labels, fields, rows)
    ]


def argilla_settings(class_names: Sequence[str], kind: str) -> dict[str, Any]:
    """Return settings of a dataset for such records, as Argilla's `Settings.from_json` reads them."""
    numbers = [("label_score", "float"), (ROW, "integer")]
    metadata = [{"name": name, "type": "metadata", "settings": {"type": sort}} for name, sort in numbers]
    terms = {"type": "terms", "values": None}
    return {
        "guidelines": "Which class is it? The suggestion and the given label may both be wrong.",
        "allow_extra_metadata": True,
        "fields": [{"name": kind, "title": kind, "required": True, "settings": {"type": kind}}],
        "questions": [
            {
                "name": QUESTION,
                "title": QUESTION,
                "required": True,
                "settings": {
                    "type": "label_selection",
                    "options": [{"value": name, "text": name} for name in class_names],
                    "visible_options": len(class_names),
                },
            }
        ],
        "metadata": [*metadata, {"name": "given_label", "type": "metadata", "settings": terms}],
        "vectors": [],
    }


def from_argilla(records: str | Path | Iterable[Any], labels: Labels) -> Labels:
    """Put what people answered in Argilla into the labels the records were made of.

    Parameters
    ----------
    records
        Records of Argilla, the same as dicts, or the path of what `records.to_json` wrote. Of several answers to a
        record the last submitted one counts; drafts and discarded ones settle nothing, as far as the records tell
        (`to_json` does not).
    labels
        What `to_argilla` was given.

    Examples
    --------
    >>> records = to_argilla(_example(), [{"text": text} for text in ("purr", "meow", "woof")])
    >>> records[0]["responses"] = {"label": [{"value": "dog", "status": "submitted"}]}
    >>> settled = from_argilla(records, _example())
    >>> settled.decided_label, settled.corrected_label
    (array([-1,  1, -1]), array([0, 1, 1]))
    """
    loaded: Any = read_json(Path(records), "records of Argilla") if isinstance(records, str | Path) else records
    found: dict[int, str] = {}
    for record in loaded:
        plain = isinstance(record, Mapping)
        facts = record.get("metadata", {}) if plain else record.metadata
        given = (record.get("responses") or {}).get(QUESTION, ()) if plain else record.responses[QUESTION]
        for each in given or ():
            value, status = (each["value"], each.get("status")) if plain else (each.value, each.status)
            if status in (None, "submitted"):
                found[_row_of(facts, labels)] = value
    return _decided(labels, found)


def to_datasets(labels: Labels, dataset: Any) -> Any:
    """Return a dataset of Hugging Face with columns for the corrected label, the score and the issue beside its own.

    Parameters
    ----------
    labels
        Of its examples.
    dataset
        A `datasets.Dataset` of n rows.
    """
    from datasets import ClassLabel, Features  # noqa: PLC0415 - only who has such a dataset has it

    if len(dataset) != len(labels):
        raise InputError(f"there are {len(labels)} labels, but the data set has {len(dataset)} rows", "dataset")
    columns = {
        "given_label": labels.given_label,
        "predicted_label": labels.predicted_label,
        "corrected_label": labels.corrected_label,
        "label_score": labels.label_score,
        "is_label_issue": labels.is_label_issue,
        "label_confidence": labels.confidence,
        "label_verified": np.zeros(len(labels), dtype=bool) if labels.verified is None else labels.verified,
    }
    dataset = dataset.remove_columns([name for name in columns if name in dataset.column_names])
    for name, column in columns.items():
        dataset = dataset.add_column(name, column.tolist())
    classes = ClassLabel(names=list(labels.class_names))
    new = {name: classes if columns[name].dtype.kind == "i" else dataset.features[name] for name in columns}
    return dataset.cast(Features({**dataset.features, **new}))


def from_datasets(dataset: Any) -> Labels:
    """Make `Labels` of a dataset of Hugging Face that `to_datasets` gave its columns."""
    names = ("given_label", "predicted_label", "label_score", "is_label_issue", "label_confidence")
    if missing := [name for name in names if name not in dataset.column_names]:
        raise InputError(f"the data set has no column {missing[0]!r}; to_datasets makes them", "dataset")
    plain = dataset.with_format(None)
    given, predicted, score, issue, confidence = (np.asarray(plain[name][:]) for name in names)
    decided = ("label_verified", "corrected_label")
    has = set(decided) <= set(dataset.column_names)
    settled = _settled(*(np.asarray(plain[name][:]) for name in decided)) if has else {}
    return Labels(
        given_label=given,
        predicted_label=predicted,
        label_score=score,
        is_label_issue=issue,
        confidence=confidence,
        class_names=tuple(dataset.features["given_label"].names),
        source="datasets",
        about={"made_by": "datasets"},
        **settled,
    )


def _worst_first(
    labels: Labels, shown: Iterable[Mapping[str, Any]], rows: NDArray[np.int64] | None
) -> list[tuple[int, Mapping[str, Any]]]:
    places = np.arange(len(labels)) if rows is None else rows
    pairs = list(zip(places.tolist(), shown, strict=True))
    return sorted(pairs, key=lambda pair: float(labels.label_score[pair[0]]))


def _facts(labels: Labels, row: int) -> dict[str, Any]:
    facts: dict[str, Any] = {ROW: row}
    if labels.ids is not None:
        facts["id"] = str(labels.ids[row])
    return facts | {
        "given_label": labels.class_names[labels.given_label[row]],
        "label_score": round(float(labels.label_score[row]), 6),
        "is_label_issue": str(bool(labels.is_label_issue[row])).lower(),
    }


def _list(records: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(records, Sequence) or not all(isinstance(each, Mapping) for each in records):
        raise InputError("expected a list of tasks, as Label Studio's export as JSON gives", "tasks")
    return records


def _row_of(facts: Mapping[str, Any], labels: Labels) -> int:
    row = facts.get(ROW)
    if not isinstance(row, int) or not 0 <= row < len(labels):
        raise InputError(f"a record says it is row {row!r}; of these {len(labels)} labels there is none", ROW)
    if labels.ids is not None and str(facts.get("id", labels.ids[row])) != str(labels.ids[row]):
        raise InputError(f"the record of row {row} is of {facts['id']!r}, and the label of {labels.ids[row]!r}", "id")
    return row


def _decided(labels: Labels, found: Mapping[int, str]) -> Labels:
    """Return labels with what people decided, by row and name of the class."""
    n = len(labels)
    decided = np.full(n, UNDECIDED) if labels.decided_label is None else labels.decided_label.copy()
    verified = np.zeros(n, dtype=bool) if labels.verified is None else labels.verified.copy()
    rows = np.array(list(found), dtype=np.int64)
    decided[rows] = _numbers(list(found.values()), labels.class_names)
    verified[rows] = True
    source = np.where(np.isin(np.arange(n), rows), "person", labels.source)
    return replace(labels, decided_label=decided, verified=verified, source=source)


def _settled(verified: NDArray[np.bool_], corrected: NDArray[np.int64]) -> dict[str, Any]:
    """Return the columns of what people decided; none where nobody did."""
    return {"verified": verified, "decided_label": np.where(verified, corrected, UNDECIDED)} if verified.any() else {}


def _numbers(names: Sequence[str], class_names: Sequence[str]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(class_names)}
    if unknown := [name for name in names if name not in numbers]:
        raise InputError(f"there is no class {unknown[0]!r}; known are {', '.join(class_names)}", "class_names")
    return np.array([numbers[name] for name in names], dtype=np.int64)


def _example() -> Labels:
    return Labels(
        given_label=np.array([0, 1, 1]),
        predicted_label=np.array([0, 0, 1]),
        label_score=np.array([0.9, 0.1, 0.8]),
        is_label_issue=np.array([False, True, False]),
        confidence=np.array([0.9, 0.7, 0.8]),
        class_names=("cat", "dog"),
    )
