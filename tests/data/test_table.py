from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from prune4rel import InputError
from prune4rel.data.columns import Columns, Opened, TableImage
from prune4rel.data.files import told_outside
from prune4rel.data.table import read_table, read_tables
from prune4rel.storage import write_arrays


@pytest.fixture
def write(tmp_path):
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"x")

    def save(text):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        return tmp_path / "t.csv"

    return save


def test_quotes_spaces_byte_order_mark_and_numbers(write):
    splits, names = read_table(write('\ufeffpath, label\n"a.png",2\n\nb.png , 0\n'))
    assert names == ("0", "1", "2")
    assert splits["train"].labels.tolist() == [2, 0]
    assert splits["train"].clean_labels is None


def test_parquet_holds_the_same(tmp_path, write):
    write("")
    columns = {"path": np.array(["a.png", "b.png"]), "label": np.array([1, 0]), "clean_label": np.array([1, 1])}
    write_arrays(tmp_path / "t.parquet", columns)
    splits, names = read_table(tmp_path / "t.parquet")
    assert splits["train"].noise_rate == 0.5
    assert names == ("0", "1")


BAD = [
    ("path,lable\na.png,1\n", r"t.csv: has no column 'label'; did you mean 'lable'"),
    ("file,label\na.png,1\n", "has no column 'path'"),
    ("", "is empty"),
    ("path,label\n", "no rows below"),
    ("path,label\na.png,1\nb.png\n", "row 1 has 1 fields, but there are 2 columns"),
    ("path,label\na.png,1\nc.png,1\n", r"c.png: no such file; 1 of the 2 files in .*t.csv are missing"),
    ("path,label\na.png,cat\nb.png,\n", "row 1 is empty"),
    ("path,label,split\na.png,1,training\nb.png,1,tset\n", "row 1 has the split 'tset'; did you mean 'test'"),
    ("path,label,split\na.png,1,test\nb.png,1,test\n", "no row has the split 'train'"),
    ("path,label,clean_label\na.png,1,\nb.png,1,1\n", "row 2 is empty"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_table_is_refused_by_row_and_column(write, text, message):
    with pytest.raises(InputError, match=message):
        read_table(write(text))


def test_other_bad_files(tmp_path, write):
    path = write("")
    path.write_bytes(b"path,label\n\xff\xfe,1\n")
    with pytest.raises(InputError, match="not a readable CSV"):
        read_table(path)
    write_arrays(tmp_path / "n.parquet", {"path": np.array([1, 2]), "label": np.array([0, 1])})
    with pytest.raises(InputError, match="column 'path' has type int64"):
        read_table(tmp_path / "n.parquet")
    mixed = {"path": np.array(["a.png"]), "label": np.array([0]), "clean_label": np.array(["cat"])}
    write_arrays(tmp_path / "m.parquet", mixed)
    with pytest.raises(InputError, match="some of label, clean_label hold numbers and some hold names"):
        read_table(tmp_path / "m.parquet")


def test_cells_that_no_value_can_be_are_refused_in_a_line():
    far = pa.array([10**15] * 4, pa.timestamp("s"))
    table = pa.table({"text": list("abcd"), "label": [0, 1, 0, 1], "id": far})
    with pytest.raises(InputError, match="column 'id': not a readable column"):
        read_tables({"": Opened(table, "t", Path())}, Columns())


def test_a_cell_names_a_file_only_where_it_holds_no_image(tmp_path):
    (tmp_path / "in.png").write_bytes(b"there")
    both = [{"bytes": b"held", "path": "/a"}, {"bytes": None, "path": "in.png"}, {"bytes": None, "path": None}, None]
    cells = [TableImage(pa.table({"image": both}), "image", row, f"{tmp_path}/t.parquet") for row in range(4)]
    assert [each.file for each in cells] == [None, tmp_path / "in.png", None, None]
    assert [each.read_bytes() for each in cells[:2]] == [b"held", b"there"]
    for cell in cells[2:]:
        with pytest.raises(OSError, match="empty"):
            cell.read_bytes()
    assert told_outside(cells, tmp_path / "t.parquet") == ""
    (tmp_path / "sent").mkdir()
    away = [TableImage(each.table, "image", each.row, f"{tmp_path}/sent/../sent/t.parquet") for each in cells[:1]]
    assert told_outside(away, tmp_path / "sent") == ""
    named = TableImage(pa.table({"image": [{"bytes": None, "path": "../in.png"}]}), "image", 0, f"{tmp_path}/sent/t")
    assert "sent/../in.png" in told_outside([named], tmp_path / "sent" / "t").replace("\\", "/")
