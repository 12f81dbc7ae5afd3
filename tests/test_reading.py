import os
import socket
import zipfile
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from prune4rel.errors import InputError, in_a_line
from prune4rel.reading import (
    AnyFloat,
    check_fits,
    parse_json,
    parse_yaml,
    read_bytes,
    read_json,
    read_parquet,
    read_record,
    read_text,
    read_yaml,
    reading,
    whole,
)
from prune4rel.storage import read_arrays, write_arrays, write_parquet


@pytest.mark.parametrize(
    "error",
    [
        ValueError("two\nlines\x1b[2J"),
        KeyError("a"),
        RecursionError(),
        MemoryError(),
        OverflowError("large"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        OSError(5, "Input/output error"),
        pa.ArrowInvalid("bad"),
        Exception(),
    ],
)
def test_whatever_a_parser_raises_becomes_one_line(error):
    with pytest.raises(InputError) as found, reading("a\x07b.json", "JSON"):
        raise error
    assert str(found.value).startswith("a\\x07b.json: ")
    assert str(found.value).isprintable()


def test_what_is_no_error_of_a_file_passes():
    for error in (KeyboardInterrupt, SystemExit):
        with pytest.raises(error), reading("a", "JSON"):
            raise error


def test_nothing_is_opened_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket has to be short
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    home = socket.socket(socket.AF_UNIX)
    home.bind("sock.json")
    for name, words in (("pipe", "a pipe"), ("loop", "symbolic links"), ("zero", "a device"), ("sock", "a socket")):
        for read in (read_bytes, read_text, read_json):
            with pytest.raises(InputError, match=words):
                read(tmp_path / f"{name}.json", "JSON")
        with pytest.raises(InputError, match=words):
            read_yaml(tmp_path / f"{name}.json")
    home.close()
    for suffix in (".npy", ".npz", ".safetensors", ".parquet"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        with pytest.raises(InputError, match="a pipe"):
            read_arrays(tmp_path / f"pipe{suffix}")


def test_a_file_too_large_for_its_kind(tmp_path):
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="is larger than 1"):
        read_yaml(tmp_path / "a.yaml")


def test_nested_brackets():
    with pytest.raises(InputError, match="nested too deeply"):
        parse_json("[" * 100_000, "a")
    with pytest.raises(InputError, match="nested too deeply"):
        parse_yaml("[" * 5_000, "a")


def test_aliases_that_never_end():
    lines = ["a0: &a0 [" + ",".join("x" * 9) + "]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    for text in ("\n".join(lines), "a: &a {<<: [" + ",".join(["*b"] * 3) + "]}", "a: &a [*a]"):
        with pytest.raises(InputError):
            parse_yaml(text, "a")
    assert parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a}", "a") == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}
    assert parse_yaml("", "a") is None


def test_yaml_makes_no_objects():
    with pytest.raises(InputError, match="could not determine a constructor"):
        parse_yaml("!!python/object/apply:os.system ['true']", "a")


def test_archives_that_unpack_without_end(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as whole, whole.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (2**29 + 128,)})
        for _ in range(2**9):
            file.write(bytes(2**20))
        file.write(bytes(128))
    with pytest.raises(InputError, match="look like a trap"):
        read_arrays(tmp_path / "a.npz")


def test_a_header_that_promises_more_than_is_there(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as whole, whole.open("x.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with pytest.raises(InputError, match=r"promises .* bytes, but holds"):
        read_arrays(tmp_path / "a.npz")


def test_one_long_name_does_not_fill_the_memory(tmp_path):
    names = pa.array(["x" * 200_000] + ["a"] * 1000)
    pq.write_table(pa.table({"labels": names}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has a text of 200,000 letters"):
        read_arrays(tmp_path / "a.parquet")


def test_a_dictionary_is_not_written_out(tmp_path):
    indices = pa.array(np.zeros(2_000_000, dtype=np.int32))
    table = pa.table({"labels": pa.DictionaryArray.from_arrays(indices, ["x" * 50_000])})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"would take .* of memory"):
        read_arrays(tmp_path / "a.parquet")


def test_what_takes_more_than_there_is():
    with pytest.raises(InputError, match="are free"):
        check_fits("a", 1e18)
    check_fits("a", 10)


@pytest.mark.parametrize("name", ["cuda:99.parquet", "os.path:join.parquet", "in:put.parquet", "http:x.parquet"])
def test_a_name_with_a_colon_is_a_file_like_any_other(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write_arrays(name, {"labels": np.arange(3)})
    assert read_arrays(name)["labels"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["s", "s.npz", "s.safetensors", "s.parquet"])
def test_every_flipped_bit_is_noticed_or_harmless(tmp_path, name):
    rng = np.random.default_rng(0)
    arrays = {
        "labels": rng.integers(0, 3, 40),
        "embeddings": rng.normal(size=(40, 4)).astype(np.float32),
        "class_names": np.array(["a", "bb", "c"]),
    }
    write_arrays(tmp_path / name, arrays)
    files = [path for path in (tmp_path / name).rglob("*") if path.is_file()] or [tmp_path / name]
    for path in files:
        whole = path.read_bytes()
        for place in rng.integers(0, 8 * len(whole), 60):
            content = bytearray(whole)
            content[place // 8] ^= 1 << (place % 8)
            path.write_bytes(content)
            try:
                found = read_arrays(tmp_path / name)
            except InputError:
                continue
            assert {key: found[key].tolist() for key in arrays if key in found} == {
                key: array.tolist() for key, array in arrays.items() if key in found
            }, place
        path.write_bytes(whole)


def test_columns_can_be_read_alone(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    write_parquet(table, tmp_path / "a.parquet")
    assert read_parquet(tmp_path / "a.parquet", ["a"]).column_names == ["a"]
    (tmp_path / "b.parquet").write_bytes(b"PAR1PAR1")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_parquet(tmp_path / "b.parquet")


@dataclass(frozen=True)
class Part:
    name: str
    rows: Annotated[int, (0, 10)]


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    kind: Literal["a", "b"] = "a"
    share: float | None = None
    loss: AnyFloat = 0.0
    about: dict[str, float] = field(default_factory=dict)
    done: bool = False


GOOD = {"parts": [{"name": "x", "rows": 3, "new": 1}], "share": 1, "loss": float("nan"), "about": {"a": 0.5}}


def test_a_record_comes_back():
    found = read_record(Whole, GOOD, "a.json")
    assert found.parts == (Part("x", 3),)
    assert (found.kind, found.share, found.about, found.done) == ("a", 1.0, {"a": 0.5}, False)
    assert np.isnan(found.loss)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ([], "it must be names and values"),
        ({"parts": [{"name": "x"}]}, r"parts\[0\].rows is missing"),
        ({"parts": [{"name": 5, "rows": 1}]}, r"parts\[0\].name must be of type str, not 5"),
        ({"parts": [{"name": "x", "rows": 11}]}, "from 0 to 10, not 11"),
        ({"parts": [{"name": "x", "rows": True}]}, "must be a whole number, not True"),
        ({"parts": [{"name": "x", "rows": 1.0}]}, "must be a whole number, not 1.0"),
        ({"parts": [{"name": "x", "rows": 2**70}]}, "must be a whole number"),
        ({"parts": 5}, "parts must be of type tuple"),
        ({"kind": "c"}, "kind cannot be 'c'"),
        ({"kind": []}, "kind cannot be"),
        ({"share": float("inf")}, "share must be"),
        ({"share": float("nan")}, "share must be"),
        ({"share": "1"}, "share must be a number"),
        ({"loss": None}, "loss must be a number"),
        ({"about": {"a": "b"}}, "about.a must be a number"),
        ({"about": []}, "about must be of type dict"),
        ({"done": 1}, "done must be of type bool"),
    ],
)
def test_what_does_not_fit_a_record_is_named(change, words):
    with pytest.raises(InputError, match=words) as error:
        read_record(Whole, {**GOOD, **change} if isinstance(change, dict) else change, "a.json")
    assert str(error.value).startswith("a.json: ")


def test_lines_for_people():
    assert in_a_line("a" * 600).endswith("...")
    assert in_a_line(ValueError("a\tb\n")) == "a b"


def test_a_table_with_names_that_are_no_text_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xff,b\n1,2\n")
    with pytest.raises(InputError, match="not a readable CSV file"), reading(tmp_path / "t.csv", "CSV file"):
        whole(pa.csv.read_csv(tmp_path / "t.csv"))


@pytest.mark.parametrize("kind", ["<f16", "<c16", "|V8"])
def test_values_that_nothing_computes_with_are_refused(tmp_path, kind):
    np.save(tmp_path / "a.npy", np.zeros(3, dtype=kind))
    np.savez(tmp_path / "a.npz", labels=np.zeros(3, dtype=kind))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="holds values of type"):
            read_arrays(tmp_path / name)
