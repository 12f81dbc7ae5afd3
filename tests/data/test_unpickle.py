import collections
import contextlib
import os
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prune4rel import InputError
from prune4rel.data import unpickle as module
from prune4rel.data.unpickle import unpickle

SAMPLE = {
    "bytes": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "scalar": np.int64(7),
    "labels": [1, 2, 3],
    "names": ("a", "ü", b"\xff"),
    "numbers": {0: 1.5, 1: True, 2: None},
}


def assert_same(read, expected):
    assert read.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, np.ndarray):
            assert isinstance(read[name], np.ndarray)
            assert read[name].dtype == value.dtype
            np.testing.assert_array_equal(read[name], value)
        else:
            assert read[name] == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_pickles_of_every_protocol(tmp_path, protocol):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(SAMPLE, protocol=protocol))
    assert_same(unpickle(path), SAMPLE)


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_saved_in_its_new_and_old_form(tmp_path, zipped):
    import torch

    torch.save(SAMPLE, tmp_path / "x.pt", _use_new_zipfile_serialization=zipped)
    assert zipfile.is_zipfile(tmp_path / "x.pt") == zipped
    assert_same(unpickle(tmp_path / "x.pt"), SAMPLE)


def test_pickles_of_python_2(tmp_path):
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    state = b"(K\x01K\x02\x85" + dtype + b"\x89U\x02\x07\xfftb"
    (tmp_path / "x").write_bytes(b"\x80\x02}U\x04data" + array + state + b"s.")
    assert unpickle(tmp_path / "x")["data"].tolist() == [7, 255]


class Trap:
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


REFUSED = [
    (Trap(os.system, "touch sprung"), f"{os.name}.system"),
    (Trap(eval, "open('sprung', 'w')"), "builtins.eval"),
    (Trap(getattr, "x", "upper"), "builtins.getattr"),
    (collections.OrderedDict(a=1), "collections.OrderedDict"),
    ({1, 2}, "set"),
    (np.array([{}], dtype=object), "'O8'"),
    (np.array(["a"]), "'U1'"),
    (np.zeros(2, dtype=[("a", "i4")]), "'V4'"),
    (1j, "builtins.complex"),
]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(("value", "name"), REFUSED, ids=[name for _, name in REFUSED])
def test_anything_else_is_refused_by_name_and_never_runs(tmp_path, monkeypatch, value, name, protocol):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_bytes(pickle.dumps([value], protocol=protocol))
    with pytest.raises(InputError, match="refused") as refusal:
        unpickle(tmp_path / "x")
    assert name.removeprefix("builtins.") in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_tensors_are_refused_by_name(tmp_path):
    import torch

    torch.save({"labels": torch.arange(3)}, tmp_path / "x.pt")
    with pytest.raises(InputError, match="torch"):
        unpickle(tmp_path / "x.pt")


HANDMADE = {
    "a change to an allowed function": b"\x80\x02c_codecs\nencode\n}X\x01\x00\x00\x00aK\x01sb.",
    "a change to a token": b"\x80\x02cnumpy\nndarray\nN}X\x01\x00\x00\x00aK\x01s\x86b.",
    "calling a token": b"\x80\x02cnumpy\nndarray\n)R.",
    "a new object of a token": b"\x80\x02cnumpy\nndarray\n)\x81.",
    "another encoding": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R.",
    "the function itself": b"\x80\x02c_codecs\nencode\n.",
    "an array without content": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R.",
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
    "a persistent object": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "an array in itself": b"\x80\x02]q\x00h\x00a.",
    "a memo of four thousand million places": b"\x80\x02]r\xff\xff\xff\xff.",
    "text longer than the file": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x0fa.",
    "bytes longer than the file": b"\x80\x05\x96\x00\x00\x00\x00\x00\x00\x00\x0fa.",
    "a frame longer than the file": b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x0fN.",
    "nothing": b"",
    "no pickle": b"GIF89a",
}


@pytest.mark.parametrize("name", HANDMADE)
def test_handmade_pickles_change_nothing(tmp_path, name):
    (tmp_path / "x").write_bytes(HANDMADE[name])
    before = dict(module._ALLOWED)
    with pytest.raises(InputError, match="x: "):
        unpickle(tmp_path / "x")
    assert before == module._ALLOWED
    assert module._ALLOWED["_codecs", "encode"]("a", "latin1") == b"a"


BAD_STATES = [
    lambda: module._Dtype("u1").__setstate__((3, "|", ("a",), ("a",), {}, -1, -1, 0)),
    lambda: module._Dtype("u1").__setstate__((3, "!", None, None, None, -1, -1, 0)),
    lambda: module._Dtype("u1").__setstate__("state"),
    lambda: module._Dtype("O8"),
    lambda: module._dtype(b"u1", False, True),
    lambda: module._Array().__setstate__((1, (2,), "u1", False, b"ab")),
    lambda: module._Array().__setstate__((1, (2,), module._Dtype("u1"), False, [1, 2])),
    lambda: module._array_from_buffer(b"ab", module._Dtype("u1"), (2,), "K"),
    lambda: module._array_from_buffer(b"ab", module._Dtype("u1"), 2, "C"),
]


@pytest.mark.parametrize("build", BAD_STATES)
def test_stand_ins_take_nothing_but_plain_arrays(build):
    with pytest.raises(module._RefusedError):
        build()


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_truncated_files(tmp_path, cut):
    whole = pickle.dumps(SAMPLE, protocol=2)
    (tmp_path / "x").write_bytes(whole[:-cut])
    with pytest.raises(InputError, match="perhaps truncated"):
        unpickle(tmp_path / "x")


def test_shared_lists_do_not_grow_without_end(tmp_path):
    value = ["ha"]
    for _ in range(60):
        value = [value, value]
    (tmp_path / "x").write_bytes(pickle.dumps(value))
    left, right = unpickle(tmp_path / "x")
    assert left is right


def test_a_zip_of_something_else(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=r"data\.pkl"):
        unpickle(tmp_path / "x.pt")


def read_back(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_bytes(content)
        return unpickle(path)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(value=plain, protocol=st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_as_pickle_gives_them(value, protocol):
    assert read_back(pickle.dumps(value, protocol=protocol)) == value


@given(st.data())
def test_a_damaged_pickle_gives_a_value_or_an_input_error(data):
    whole = bytearray(pickle.dumps({"a": np.arange(4), "b": ["x", 1.5]}, protocol=2))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        read_back(bytes(whole))
