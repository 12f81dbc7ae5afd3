import csv
import json
import os

import numpy as np
import pytest
from PIL import Image

import prune4rel as p4r
from prune4rel.cleaning.write import Origin
from prune4rel.decisions import Decision, DecisionLog
from prune4rel.exporting import export, get, list_exports, open_corrected, register_export
from prune4rel.exporting.form import FORMS
from prune4rel.storage import write_json

NAMES = ("cat", "dog")
GIVEN = [0, 0, 0, 1, 1, 1]
BELIEVED = [0, 1, 0, 1, 1, 0]
"""Rows 1 and 5 are believed to be wrong."""


def write_judged(home, dataset, data, ids=None, **options):
    home.mkdir()
    found = p4r.Labels(
        given_label=GIVEN,
        predicted_label=BELIEVED,
        label_score=np.where(np.equal(GIVEN, BELIEVED), 0.9, 0.1),
        is_label_issue=np.not_equal(GIVEN, BELIEVED),
        confidence=np.full(6, 0.9),
        class_names=NAMES,
        ids=ids,
    )
    found.save(home / "labels.parquet")
    write_json(home / "source.json", {"dataset": dataset, "data": str(data), "options": options, "files": {}})
    return home


@pytest.fixture
def photos(tmp_path):
    for row, label in enumerate(GIVEN):
        place = tmp_path / "photos" / NAMES[label]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (40 * row, 0, 0)).save(place / f"{row % 3}.png")
    return tmp_path / "photos"


@pytest.fixture
def judged(tmp_path, photos):
    ids = np.array([f"{NAMES[label]}/{row % 3}.png" for row, label in enumerate(GIVEN)])
    return write_judged(tmp_path / "cleaned", "folder", photos, ids)


@pytest.fixture
def texts(tmp_path):
    words = ["=good", "fine, really", 'a "quoted" one', "bad\nnews", "awful", "grand é"]
    with (tmp_path / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *zip(words, [NAMES[label] for label in GIVEN], strict=True)])
    return write_judged(tmp_path / "cleaned", "table", tmp_path / "texts.csv"), words


def listing(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def reds(dataset):
    return {row: int(np.asarray(Image.open(str(file)))[0, 0, 0]) for row, file in enumerate(dataset.train.files)}


def test_a_folder_has_every_image_under_its_right_class(judged, photos, tmp_path):
    before = listing(photos)
    said = export(judged, "folder", tmp_path / "out")
    assert said == ["6 of 6 examples, 2 with another label than the one given"]
    again = p4r.load_dataset("folder", tmp_path / "out")
    right = {reds(again)[row] // 40: again.class_names[label] for row, label in enumerate(again.train.labels)}
    assert right == {row: NAMES[label] for row, label in enumerate(BELIEVED)}
    assert sorted(path.name for path in (tmp_path / "out" / "dog").iterdir()) == ["0.png", "1-2.png", "1.png"]
    assert listing(photos) == before
    assert not any(path.is_symlink() or path.stat().st_nlink > 1 for path in (tmp_path / "out").rglob("*.png"))


@pytest.mark.parametrize("way", ["hardlink", "symlink"])
def test_links_are_made_when_they_are_asked_for(judged, photos, tmp_path, way):
    before = listing(photos)
    export(judged, "folder", tmp_path / "out", files=way)
    for path in (tmp_path / "out").rglob("*.png"):
        assert path.is_symlink() if way == "symlink" else path.stat().st_nlink == 2
        assert os.path.realpath(path).startswith(str(photos)) or way == "hardlink"
    assert listing(photos) == before


def test_what_people_decided_wins_and_what_they_removed_is_gone(judged, tmp_path):
    corrected, _ = open_corrected(judged)
    settled = Decision(index=1, id="cat/1.png", what="label", label="cat", given="cat")
    DecisionLog(judged / "decisions.jsonl").append([settled])
    DecisionLog(judged / "decisions.jsonl").append([Decision(index=3, id="dog/0.png", what="remove", given="dog")])
    said = export(judged, "csv", tmp_path / "out.csv")
    assert said[0].startswith("decisions: 1 labels settled, 1 examples removed")
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert set(rows) == {str(name) for name in corrected.labels.ids} - {"dog/0.png"}
    assert (rows["cat/1.png"]["label"], rows["cat/1.png"]["verified"]) == ("cat", "true")
    assert (rows["dog/2.png"]["label"], rows["dog/2.png"]["given_label"]) == ("cat", "dog")


@pytest.mark.parametrize(
    ("issues", "expected"),
    [("correct", dict(enumerate(BELIEVED))), ("keep", dict(enumerate(GIVEN))), ("drop", {0: 0, 2: 0, 3: 1, 4: 1})],
)
def test_what_becomes_of_issues(judged, issues, expected):
    corrected, _ = open_corrected(judged, issues=issues)
    assert dict(zip(corrected.rows.tolist(), corrected.new_label.tolist(), strict=True)) == expected


def test_a_table_of_texts_is_read_again_as_it_was(texts, tmp_path):
    judged, words = texts
    export(judged, "csv", tmp_path / "out.csv", raw=True)
    again = p4r.load_dataset("table", tmp_path / "out.csv", text="text", label="label")
    assert again.train.texts == tuple(words)
    assert again.train.labels.tolist() == BELIEVED


@pytest.mark.parametrize("raw", [False, True])
def test_no_cell_is_a_formula_unless_that_is_wanted(tmp_path, raw):
    words = ["=cmd|' /C calc'!A0", "@sum", "-1", "+1+1", "good", "fine"]
    names = ("=x", "-1")
    with (tmp_path / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *((word, names[k % 2]) for k, word in enumerate(words))])
    found = p4r.clean(embeddings=np.eye(6, dtype=np.float32), labels=[0, 1] * 3, class_names=names)
    origin = Origin("table", str(tmp_path / "texts.csv"), {"text": "text", "label": "label"})
    found.save(tmp_path / "cleaned", source=origin)
    export(tmp_path / "cleaned", "csv", tmp_path / "out.csv", issues="keep", raw=raw)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    if raw:
        assert [each for each in words if each not in cells] == []
    else:
        assert [each for each in cells if each and each[0] in "=@+\t"] == []
        assert f"'{words[0]}" in cells
    assert "-1" in cells
    export(tmp_path / "cleaned", "cleanlab", tmp_path / "issues.csv")
    assert not {"=x"} & set((tmp_path / "issues.csv").read_text().replace("\n", ",").split(","))


def test_paths_in_a_table_lead_to_the_images(judged, tmp_path):
    export(judged, "csv", tmp_path / "out.csv")
    again = p4r.load_dataset("table", tmp_path / "out.csv", path="path", label="label")
    assert {row: red // 40 for row, red in reds(again).items()} == {row: row for row in range(6)}
    assert again.train.labels.tolist() == BELIEVED


def test_the_library_datasets_reads_a_folder_of_parquet(judged, tmp_path):
    datasets = pytest.importorskip("datasets")
    export(judged, "hf", tmp_path / "out")
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))["train"]
    assert found.features["label"].names == list(NAMES)
    assert found["label"][:] == BELIEVED
    assert found["given_label"][:] == GIVEN
    assert [int(np.asarray(image)[0, 0, 0]) // 40 for image in found["image"]] == list(range(6))


def test_texts_and_vectors_go_into_parquet_too(texts, tmp_path):
    judged, words = texts
    export(judged, "hf", tmp_path / "out")
    again = p4r.load_dataset("table", tmp_path / "out", text="text", label="label")
    assert (again.train.texts, again.class_names) == (tuple(words), NAMES)
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    np.savez(tmp_path / "rows.npz", features=rows, labels=np.array(GIVEN))
    export(write_judged(tmp_path / "arrays", "arrays", tmp_path / "rows.npz"), "hf", tmp_path / "vectors")
    again = p4r.load_dataset("table", tmp_path / "vectors", embedding="embedding", label="label")
    np.testing.assert_array_equal(again.train.features, rows)


def test_a_test_split_is_taken_along_as_it_is(photos, tmp_path):
    (tmp_path / "set").mkdir()
    photos.rename(tmp_path / "set" / "train")
    for name in NAMES:
        (tmp_path / "set" / "test" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "set" / "test" / name / "x.png")
    judged = write_judged(tmp_path / "cleaned", "folder", tmp_path / "set")
    export(judged, "folder", tmp_path / "out")
    again = p4r.load_dataset("folder", tmp_path / "out")
    assert np.bincount(again.train.labels).tolist() == [3, 3]
    assert again.test.labels.tolist() == [0, 1]
    export(judged, "csv", tmp_path / "out.csv")
    again = p4r.load_dataset("table", tmp_path / "out.csv", path="path", label="label", split="split")
    assert (len(again.train), len(again.test)) == (6, 2)
    export(judged, "hf", tmp_path / "parquet")
    assert sorted(path.name[:5] for path in (tmp_path / "parquet" / "data").iterdir()) == ["test-", "train"]


def test_a_class_that_would_lead_out_of_the_folder_is_refused(judged, tmp_path):
    found, _ = open_corrected(judged)
    object.__setattr__(found.dataset, "class_names", ("../cat", "dog"))
    with pytest.raises(p4r.InputError, match="cannot be the name of a folder"):
        get("folder").write(found, tmp_path / "out")


def test_rubbish(judged, photos, tmp_path):
    for words, call in (
        ("unknown form to export to 'fodler'; did you mean 'folder'", lambda: export(judged, "fodler", tmp_path / "o")),
        ("exists already", lambda: export(judged, "csv", photos)),
        ("the examples lie in there", lambda: export(judged, "folder", photos, force=True)),
        ("is read here", lambda: export(judged, "folder", judged, force=True)),
        ("has no option 'files'", lambda: export(judged, "csv", tmp_path / "o", files="copy")),
        ("must be copy, hardlink or symlink", lambda: export(judged, "folder", tmp_path / "o", files="move")),
        ("issues: must be one of", lambda: export(judged, "csv", tmp_path / "o", issues="burn")),
        ("holds no labels.parquet", lambda: export(photos, "csv", tmp_path / "o")),
    ):
        with pytest.raises(p4r.InputError, match=words):
            call()
    (photos / "dog" / "1.png").unlink()
    (photos / "dog" / "9.png").mkdir()
    with pytest.raises(p4r.InputError, match="The examples have changed"):
        export(judged, "folder", tmp_path / "o")
    assert not (tmp_path / "o").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cleaned", "photos"]


def test_a_file_that_went_is_named_and_nothing_is_left(judged, photos, tmp_path):
    corrected, _ = open_corrected(judged)
    assert corrected.train is not None
    (photos / "dog" / "1.png").unlink()
    with pytest.raises(p4r.InputError, match=r"dog/1.png: cannot be read \(no such file"):
        get("folder").write(corrected, tmp_path / "out")


def test_a_form_of_ones_own(judged, tmp_path):
    @register_export("numbers")
    def write_numbers(corrected, place, *, sign=""):
        """Numbers of the right classes."""
        place.write_text(json.dumps([f"{sign}{label}" for label in corrected.new_label]))

    try:
        assert "numbers" in list_exports()
        export(judged, "numbers", tmp_path / "out.json", sign="+")
        assert json.loads((tmp_path / "out.json").read_text()) == [f"+{label}" for label in BELIEVED]
    finally:
        FORMS.pop("numbers")
