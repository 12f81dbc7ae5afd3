import json
import os
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from prune4rel import InputError, Labels
from prune4rel.data import dataset_of, load_dataset, recognise
from prune4rel.encoders import embed, open_encoder


def read(path, **columns):
    found = recognise(path, **columns)
    return load_dataset(found.dataset, found.data, **found.options), found.said


@pytest.fixture
def png(tmp_path):
    def make(name, colour="red", size=(6, 5)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, colour).save(path)
        return path

    return make


@pytest.fixture
def write(tmp_path):
    def save(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return save


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "Review,Stars,Number\nsuperb film,good,1\n,bad,2\nno,bad,3\nyes,good,4\n"),
        ("bom.csv", '\ufeffReview;Stars;Number\n"superb film";good;1\n;bad;2\nno;bad;3\nyes;good;4\n'),
        ("t.tsv", "Review\tStars\tNumber\nsuperb film\tgood\t1\n\tbad\t2\nno\tbad\t3\nyes\tgood\t4\n"),
        (
            "t.jsonl",
            "\n".join(
                json.dumps({"Review": review, "Stars": stars, "Number": k})
                for k, (review, stars) in enumerate(
                    [("superb film", "good"), ("", "bad"), ("no", "bad"), ("yes", "good")], start=1
                )
            ),
        ),
    ],
)
def test_texts_in_any_table(write, name, text):
    data, said = read(write(name, text), label="Stars")
    assert data.train.texts == ("superb film", "", "no", "yes")
    assert data.class_names == ("bad", "good")
    assert data.train.labels.tolist() == [1, 0, 0, 1]
    assert said[0].endswith(f"{name}: texts from column 'Review'")


def test_columns_are_guessed_and_said(write):
    path = write("t.csv", "uid,sentence,label,split\na,one day,x,train\nb,another day,y,train\nc,day three,x,test\n")
    data, said = read(path)
    assert data.train.ids.tolist() == ["a", "b"]
    assert data.test.texts == ("day three",)
    assert said == (f"{path}: labels from column 'label', texts from column 'sentence'",)
    assert read(path, label="label", text="sentence")[1] == ()


def test_a_column_of_few_words_is_taken_for_the_labels(write):
    rows = "".join(f"some longer text number {k},{'ab'[k % 2]}\n" for k in range(10))
    data, said = read(write("t.csv", f"body text,mood\n{rows}"))
    assert data.class_names == ("a", "b")
    assert "labels from column 'mood'" in said[0]


@pytest.mark.parametrize("url", [False, True])
def test_paths_of_images(png, write, url):
    files = [png(f"in/{name} x.png", name) for name in ("red", "blue")]
    names = [file.as_uri() if url else f"in/{file.name}" for file in files]
    data, _ = read(write("t.csv", "picture file,label\n" + "".join(f"{name},{k}\n" for k, name in enumerate(names))))
    assert data.kind == "files"
    assert [file.read_bytes() for file in data.train.files] == [file.read_bytes() for file in files]
    assert data.train.ids.tolist() == names


def test_folders_of_classes_of_tars_of_parts_and_of_arrays(png, tmp_path):
    png("photos/cat/a.png")
    png("photos/dog/b.png")
    assert recognise(tmp_path / "photos").dataset == "folder"
    vectors = pa.FixedSizeListArray.from_arrays(np.arange(8.0), 2)
    for k in range(2):
        part = pa.table({"embedding": vectors, "label": [0, 1, 0, 1]})
        (tmp_path / "parts").mkdir(exist_ok=True)
        pq.write_table(part, tmp_path / "parts" / f"train-{k}.parquet")
    data, said = read(tmp_path / "parts")
    assert data.train.features.shape == (8, 2)
    assert "vectors from column 'embedding'" in said[0]
    np.savez(tmp_path / "a.npz", labels=[0, 1], features=np.eye(2))
    assert recognise(tmp_path / "a.npz").dataset == "arrays"


def test_tables_of_the_library_datasets_tell_class_names_and_hold_images(png, tmp_path):
    cells = [{"bytes": png(f"{k}.png", colour).read_bytes(), "path": None} for k, colour in enumerate(["red", "blue"])]
    info = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    schema = pa.schema(
        [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())],
        metadata={"huggingface": json.dumps(info)},
    )
    (tmp_path / "export" / "data").mkdir(parents=True)
    for split in ("train", "test"):
        table = pa.Table.from_pylist([{"image": cell, "label": k} for k, cell in enumerate(cells)], schema=schema)
        pq.write_table(table, tmp_path / "export" / "data" / f"{split}-00000-of-00001.parquet")
    data, _ = read(tmp_path / "export")
    assert data.class_names == ("cat", "dog")
    assert len(data.test) == 2
    assert data.train.files[1].read_bytes() == cells[1]["bytes"]
    found = embed(data.train, open_encoder("tests.encoders.own:colours", size=3), cache=False)
    assert np.allclose(found, [[1, 0, 0], [0, 0, 1]], atol=0.01)


def make_tar(path, members):
    import io

    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def test_tars_are_read_where_they_lie(png, tmp_path):
    red, blue = png("r.png").read_bytes(), png("b.png", "blue").read_bytes()
    shards = tmp_path / "shards"
    shards.mkdir()
    make_tar(shards / "train-0.tar", {"000.png": red, "000.cls": b"1", "001.png": blue, "001.cls": b"0"})
    make_tar(shards / "train-1.tar", {"002.png": blue, "002.cls": b"0\n", "notes.md": b"hello"})
    make_tar(shards / "test-0.tar", {"a/003.png": red, "a/003.json": b'{"label": 1}'})
    data, _ = read(shards)
    assert data.train.labels.tolist() == [1, 0, 0]
    assert [file.read_bytes() for file in data.train.files] == [red, blue, blue]
    assert data.test.ids.tolist() == ["a/003"]
    texts = make_tar(tmp_path / "t.tar", {"0.txt": b"a red hen", "0.cls": b"x", "1.txt": b"sea", "1.cls": b"y"})
    assert read(texts)[0].train.texts == ("a red hen", "sea")


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"../out.png": b"x", "../out.cls": b"0"}, "leads out of it"),
        ({"/etc/out.png": b"x"}, "leads out of it"),
        ({"a.png": b"x"}, "has no label"),
        ({"a.md": b"x"}, "no image and no text"),
        ({"a.png": b"x", "a.json": b"{}"}, "holds no 'label'"),
    ],
)
def test_bad_tars_are_refused(tmp_path, members, words):
    with pytest.raises(InputError, match=words):
        read(make_tar(tmp_path / "t.tar", members))


def test_a_tar_that_is_none_or_compressed(tmp_path, write):
    with pytest.raises(InputError, match="not a readable tar"):
        read(write("n.tar", b"nonsense" * 100))
    with tarfile.open(tmp_path / "c.tar", "w:gz") as tar:
        tar.add(write("a.png", b"x"), "a.png")
    with pytest.raises(InputError, match="compressed; unpack it"):
        read(tmp_path / "c.tar")


BAD = [
    ("t.csv", 'text,label\nfine,1\n"never closed,1\n', r"not a readable CSV file \(line 3: "),
    ("t.csv", "text,label\na,1\n".encode("utf-16"), "save it as UTF-8"),
    ("t.csv", 'v,label\n"[1, 2]",a\n"[3]",b\n', "differ in length: 2 numbers in row 0, 1 in row 1"),
    ("t.csv", 'v,label\n"[1, 2, 3, 4]",a\n"[1, 2, 3, ...]",b\n', r"row 1 holds '\.\.\.'; expected numbers alone"),
    ("t.csv", "x1,x2,label\n" + "1,2,a\n" * 200 + "x,2,b\n", "expected a number"),
    ("t.json", "[1, 2]", "no list of objects"),
    ("t.csv", "text,label\na,1\nb\n", "row 1 has 1 fields, but there are 2 columns"),
    ("t.csv", "text,label,label\na,1,2\n", "two columns named 'label'"),
    ("t.csv", "text,label\na,\nb,x\n", "row 0 is empty"),
    ("t.csv", b"text,label\n\xff\xfe,1\n", "not a readable CSV file in UTF-8"),
    ("t.csv", "a,b,c\n1.5,2.5,3.5\n", "which column holds the labels"),
    ("t.csv", "a,label\n1.5,2.5\n", "which column holds the examples"),
    ("t.csv", "text,note\nsome words,more words\nother words,different\n", "which column holds the labels"),
    ("t.csv", "path,label\nhttps://example.org/a.png,1\n", "not on this machine; fetch the files"),
    ("t.csv", "path,label\nabsent.png,1\n", "absent.png: no such file"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": ', "not a readable JSON, one object a line"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": "x"}\n', "not a readable JSON, one object a line"),
    ("t.jsonl", '{"text": "a", "label": 1}\n{"text": null, "label": 0}\n', "missing value in row 1"),
    ("t.jsonl", '{"text": "a", "label": 1.5}\n', "row 0 is 1.5; labels are whole numbers"),
    ("t.jsonl", '{"vector": [1, 2], "label": 1}\n{"vector": [1], "label": 0}\n', "vectors differ in length"),
    ("t.parquet", b"PAR1 nonsense", "not a readable Parquet file"),
    ("t.arrow", b"nonsense", "not a readable Arrow file"),
    ("t.csv", "", "is empty"),
    ("t.csv", "text,label\n", "no rows below"),
    ("t.docx", "x", "what is this"),
    ("t.png", "x", "is one image"),
]


@pytest.mark.parametrize(("name", "text", "words"), BAD)
def test_bad_tables_are_refused_with_the_remedy(write, name, text, words):
    with pytest.raises(InputError, match=words):
        read(write(name, text))


def test_what_is_not_there(tmp_path, png, write):
    with pytest.raises(InputError, match="no such file or folder"):
        read(tmp_path / "absent")
    with pytest.raises(InputError, match="URLs are not read"):
        read("https://example.org/t.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="the folder is empty"):
        read(tmp_path / "empty")
    png("flat/a.png")
    with pytest.raises(InputError, match="sort them into one folder a class"):
        read(tmp_path / "flat")
    with pytest.raises(InputError, match="has no column 'lable'; did you mean 'label'"):
        read(write("t.csv", "text,label\na,b\n"), label="lable")
    png("photos/cat/a.png")
    with pytest.raises(InputError, match="has no such column; leave --text-column out"):
        read(tmp_path / "photos", text="words")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", 'id,vector,label\nu0,"[0.5, -1]",a\nu1,"[2, 3e-1]",b\n', "vectors from column 'vector'"),
        ("a.tsv", "vector\tlabel\n[0.5 -1. ]\ta\n[2. 0.3]\tb\n", "vectors from column 'vector'"),
        ("a.csv", ",x,y,label\n0,0.5,-1,a\n1,2,3e-1,b\n", "vectors from 2 columns of numbers, 'x' to 'y'"),
        ("a.json", '[{"x": 0.5, "y": -1, "label": "a"}, {"x": 2, "y": 0.3, "label": "b"}]', "'x' to 'y'"),
    ],
)
def test_vectors_in_text(write, name, text, said):
    path = write(name, text)
    data, told = read(path)
    np.testing.assert_allclose(data.train.features, [[0.5, -1], [2, 0.3]])
    assert said in told[0]
    assert data.class_names == ("a", "b")
    if "x" in said:
        assert read(path, embedding="y")[0].train.features.tolist() == [[-1], [np.float32(0.3)]]
        with pytest.raises(InputError, match=r"has no column 'z\*'"):
            read(path, embedding="z*")


def test_quotes_in_a_tsv_may_be_marks_as_any_other(write):
    data, _ = read(write("t.tsv", 'text\tlabel\n"quoted"\ta\n5" pipe\tb\n'))
    assert data.train.texts == ("quoted", '5" pipe')
    data, _ = read(write("u.tsv", 'text\tlabel\n"never closed\ta\n5" pipe\tb\n'))
    assert data.train.texts == ('"never closed', '5" pipe')


def test_files_without_a_suffix_and_files_that_are_missing(png, write, tmp_path):
    png("a.png").rename(tmp_path / "a")
    data, said = read(write("t.csv", "path,label\na,x\nb,y\n"), skip_missing=True)
    assert said[0].endswith("paths of images from column 'path'")
    broken = {}
    embed(data.train, open_encoder("tests.encoders.own:colours", size=4), cache=False, skip_broken=True, broken=broken)
    assert list(broken) == [1]
    with pytest.raises(InputError, match=r"1 of the 2 files .* are missing; paths are taken from the folder"):
        read(tmp_path / "t.csv")


def test_names_that_are_no_text_and_folders_of_systems(png, tmp_path):
    png("photos/cat/a.png")
    png("photos/dog/a.png")
    png("photos/__MACOSX/cat/._a.png")
    assert read(tmp_path / "photos")[0].class_names == ("cat", "dog")
    (tmp_path / "photos" / "dog" / "a.png").rename(os.fsdecode(os.fsencode(tmp_path / "photos/dog") + b"/\xff.png"))
    with pytest.raises(InputError, match=r"not in UTF-8; rename it"):
        read(tmp_path / "photos")


def test_a_text_of_ten_megabytes(write):
    data, _ = read(write("t.csv", f"text,label\n{'long word ' * 10**6},a\nshort,b\n"))
    assert len(data.train.texts[0]) == 10**7 - 1
    assert embed(data.train, open_encoder("tests.encoders.own:lengths"), cache=False)[0].tolist() == [20_000, 4000]


def test_frames_of_every_kind(write):
    columns = {"words": ["red hen", "blue sea", "old fox"], "label": ["a", "b", "a"]}
    pandas = pytest.importorskip("pandas")
    frames = [pa.table(columns), pandas.DataFrame(columns)]
    for frame in frames:
        data, said = dataset_of(frame)
        assert data.train.texts == ("red hen", "blue sea", "old fox")
        assert said == ("the frame: labels from column 'label', texts from column 'words'",)
    data, _ = dataset_of({"train": frames[1], "test": frames[1].iloc[:1]}, label="label")
    assert len(data.test) == 1
    assert dataset_of(data)[0] is data
    assert dataset_of(write("t.csv", "text,label\na,b\n"))[0].train.texts == ("a",)
    with pytest.raises(InputError, match="mixes kinds of values"):
        dataset_of(pandas.DataFrame({"text": ["a", "b"], "label": ["x", 1]}))
    with pytest.raises(InputError, match="two columns named 'text'"):
        dataset_of(pandas.DataFrame([["a", "b", "x"]], columns=["text", "text", "label"]))
    with pytest.raises(InputError, match="cannot read a int"):
        dataset_of(3)


def test_frames_of_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": ["red", "blue"], "label": [0, 1]})
    assert dataset_of(frame)[0].train.texts == dataset_of(frame.lazy())[0].train.texts == ("red", "blue")


def test_data_sets_of_the_library_in_memory():
    library = pytest.importorskip("datasets")
    data, _ = dataset_of(
        library.Dataset.from_dict({"text": ["red", "blue", "green"], "label": [0, 1, 1]}).select([2, 0])
    )
    assert data.train.texts == ("green", "red")
    assert data.train.labels.tolist() == [1, 0]
    whole = library.Dataset.from_dict({"text": ["red", "blue"], "label": [0, 1]})
    assert dataset_of(whole.to_iterable_dataset())[0].train.texts == ("red", "blue")


def test_what_was_found_out_about_labels_is_no_table_of_examples(tmp_path):
    labels = Labels(
        given_label=[0, 1],
        predicted_label=[0, 0],
        label_score=[0.9, 0.1],
        is_label_issue=[False, True],
        confidence=[0.9, 0.7],
        class_names=("cat", "dog"),
    )
    labels.save(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="holds what was found out about labels"):
        read(tmp_path / "labels.csv")
