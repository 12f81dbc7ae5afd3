import numpy as np
import pytest

from prune4rel import InputError, open_encoder
from prune4rel.encoders.onnx import names_other_files

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, external_data_helper, helper, numpy_helper  # noqa: E402 - after what may be absent


def tensor(name, elsewhere=None):
    made = numpy_helper.from_array(np.ones(4, np.float32), name)
    if elsewhere is not None:
        external_data_helper.set_external_data(made, elsewhere)
        made.ClearField("raw_data")
    return made


def network(*nodes, tensors=(), functions=()):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", 3, 8, 8]) for name in "xy"]
    graph = helper.make_graph([*nodes, helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:], tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], functions=functions)
    made.ir_version = 8
    return made


def inner(elsewhere):
    return helper.make_graph([], "inner", [], [], [tensor("w", elsewhere)])


def networks(elsewhere):
    constant = helper.make_node("Constant", [], ["c"], value=tensor("c", elsewhere))
    yield network(tensors=[tensor("w", elsewhere)])
    yield network(constant)
    yield network(helper.make_node("If", ["c"], ["z"], then_branch=inner(elsewhere), else_branch=inner(None)))
    yield network(functions=[helper.make_function("own", "f", [], ["c"], [constant], [helper.make_opsetid("", 17)])])


@pytest.mark.parametrize("elsewhere", ["../secret", "/etc/passwd", "beside.bin"])
def test_numbers_in_other_files_are_refused_wherever_they_stand(tmp_path, elsewhere):
    for made in networks(elsewhere):
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        with pytest.raises(InputError, match="keeps numbers in other files"):
            open_encoder(f"onnx:{tmp_path / 'm.onnx'}", device="cpu")


def test_a_network_in_one_file_is_read(tmp_path):
    assert not any(names_other_files(made.SerializeToString()) for made in networks(None))
    (tmp_path / "m.onnx").write_bytes(next(networks(None)).SerializeToString())
    assert open_encoder(f"onnx:{tmp_path / 'm.onnx'}", device="cpu", size=8).dim == 3


@pytest.mark.parametrize("content", [b"\x0b", b"\x3a\x05a", b"\x08" + b"\xff" * 11, b"\x3a\x80"])
def test_what_is_no_network_is_said(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(InputError, match="not a readable ONNX file"):
        open_encoder(f"onnx:{tmp_path / 'm.onnx'}", device="cpu")
