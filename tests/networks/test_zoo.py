import fnmatch
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from prune4rel.errors import InputError
from prune4rel.inference.model import load_model, save_model
from prune4rel.networks import list_networks, make
from prune4rel.networks.zoo import import_timm


class Model(nn.Module):
    """A model as timm makes it when asked for no classes: pooled features come out."""

    def __init__(self, in_chans, num_classes=0, img_size=None, drop_rate=0.0):
        assert num_classes == 0
        super().__init__()
        self.num_features = 6
        self.img_size, self.drop_rate = img_size, drop_rate
        self.convolution = nn.Conv2d(in_chans, 6, 1)

    def forward(self, x):
        return self.convolution(x).mean((2, 3))


@pytest.fixture
def timm(monkeypatch):
    """A module that answers as timm does, with two models."""
    known = {"resnet50": False, "vit_tiny": True}
    module = SimpleNamespace(
        is_model=lambda name: name.partition(".")[0] in known,
        list_models=lambda pattern="*": fnmatch.filter(known, pattern),
        get_pretrained_cfg=lambda name: SimpleNamespace(fixed_input_size=known[name]),
        create_model=lambda _name, **options: Model(**options),
    )
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


def test_without_timm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"need timm, which cannot be imported .* pip install 'prune4rel\[vision\]'"):
        make("timm/resnet50", 10)
    with pytest.raises(InputError, match="need timm"):
        list_networks("timm/*")


@pytest.mark.usefixtures("timm")
def test_models_of_timm_are_listed_where_they_are_asked_for():
    assert list_networks("timm/*resnet*") == ["timm/resnet50"]
    assert "timm/resnet50" not in list_networks()


@pytest.mark.usefixtures("timm")
def test_same_interface_as_all_networks():
    network = make("timm/resnet50", 4, shape=(1, 9, 9))
    x = torch.randn(2, 1, 9, 9)
    assert network.dim == 6
    assert network.embed(x).shape == (2, 6)
    assert torch.equal(network(x), network.classify(network.embed(x)))


@pytest.mark.usefixtures("timm")
def test_options_are_passed_on():
    assert make("timm/resnet50", 4, drop_rate=0.5).body.drop_rate == 0.5


@pytest.mark.usefixtures("timm")
def test_a_model_of_fixed_size_is_built_for_the_inputs():
    assert make("timm/vit_tiny", 4, shape=(3, 64, 48)).body.img_size == (64, 48)
    assert make("timm/vit_tiny", 4, img_size=32).body.img_size == 32
    assert make("timm/resnet50", 4, shape=(3, 64, 48)).body.img_size is None


def test_a_hidden_layer_before_the_classifier_counts(timm):
    class Wider(Model):
        def __init__(self, **options):
            super().__init__(**options)
            self.head_hidden_size = 8
            self.convolution = nn.Conv2d(3, 8, 1)

    timm.create_model = lambda _name, **options: Wider(**options)
    assert make("timm/resnet50", 4)(torch.zeros(1, 3, 5, 5)).shape == (1, 4)


@pytest.mark.usefixtures("timm")
def test_unknown_model_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown network 'timm/resnet51'; did you mean resnet50\?"):
        make("timm/resnet51", 4)
    with pytest.raises(InputError, match=r"unknown network 'timm/qqqqqqq'; timm.list_models\(\) names them all"):
        make("timm/qqqqqqq", 4)


@pytest.mark.usefixtures("timm")
def test_what_timm_refuses_is_told():
    with pytest.raises(InputError, match=r"'timm/resnet50': timm could not make it \(.*'fantasy'"):
        make("timm/resnet50", 4, fantasy=1)


def test_weights_that_cannot_be_fetched_can_be_given_as_a_file(timm):
    def fail(_name, **_options):
        raise OSError("no network")

    timm.create_model = fail
    with pytest.raises(
        InputError, match=r"\(no network\); without a network, give the weights as checkpoint_path=FILE"
    ):
        make("timm/resnet50", 4, pretrained=True)


def test_timm_that_breaks_on_import_is_told_in_a_line(monkeypatch):
    def broken(name):
        raise (ImportError if name == "torchvision" else RuntimeError)("half of it is missing")

    monkeypatch.setattr("prune4rel.networks.zoo.import_module", broken)
    with pytest.raises(InputError, match=r"cannot be imported here \(half of it is missing"):
        make("timm/resnet50", 4)


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("wrap", [lambda tensors: tensors, lambda tensors: {"state_dict": tensors, "epoch": 3}])
def test_weights_of_ones_own_are_put_into_the_model(tmp_path, suffix, wrap):
    weights = Model(3, 0).state_dict()
    if suffix == ".pth":
        torch.save(wrap({f"module.{name}": tensor for name, tensor in weights.items()}), tmp_path / "w.pth")
    else:
        save_file(weights, tmp_path / "w.safetensors")
    network = make("timm/resnet50", 4, checkpoint_path=str(tmp_path / f"w{suffix}"))
    assert torch.equal(network.body.convolution.weight, weights["convolution.weight"])


class Touch:
    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (str(self.file), "w"))


@pytest.mark.usefixtures("timm")
def test_weights_that_would_run_code_are_refused(tmp_path):
    torch.save({"state_dict": Touch(tmp_path / "owned")}, tmp_path / "evil.pth")
    with pytest.raises(InputError, match="not a readable file of weights"):
        make("timm/resnet50", 4, checkpoint_path=tmp_path / "evil.pth")
    assert not (tmp_path / "owned").exists()


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("content", [b"", b"x" * 100])
def test_weights_that_cannot_be_read_are_refused(tmp_path, content):
    for name in ("w.pth", "w.safetensors"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="not a readable file of weights"):
            make("timm/resnet50", 4, checkpoint_path=tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        make("timm/resnet50", 4, checkpoint_path=tmp_path / "absent.pth")
    torch.save({"other": torch.zeros(1)}, tmp_path / "w.pth")
    with pytest.raises(InputError, match="holds no weights of this model"):
        make("timm/resnet50", 4, checkpoint_path=tmp_path / "w.pth")


@pytest.mark.usefixtures("timm")
def test_timm_is_not_told_of_files_in_other_ways():
    with pytest.raises(InputError, match="pretrained_cfg_overlay is not passed on; give weights as checkpoint_path"):
        make("timm/resnet50", 4, pretrained=True, pretrained_cfg_overlay={"file": "evil.pth"})


def test_the_real_timm_loads_no_code_from_a_card(tmp_path):
    pytest.importorskip("timm", exc_type=ImportError)
    card = {"network": "timm/resnet18", "shape": [3, 32, 32], "mean": [0.5] * 3, "std": [0.5] * 3, "class_names": ["a"]}
    torch.save({"state_dict": Touch(tmp_path / "owned")}, tmp_path / "evil.pth")
    networks = nn.ModuleList([make("timm/resnet18", 1, shape=(3, 32, 32))])
    overlay = {"pretrained": True, "pretrained_cfg_overlay": {"file": str(tmp_path / "evil.pth")}}
    for options in ({"checkpoint_path": str(tmp_path / "evil.pth")}, overlay):
        save_model(tmp_path, networks, {**card, "options": options})
        with suppress(InputError):
            load_model(tmp_path)
        assert not (tmp_path / "owned").exists()


@pytest.mark.usefixtures("timm")
def test_features_are_refused():
    with pytest.raises(InputError, match=r"'timm/resnet50' takes images"):
        make("timm/resnet50", 4, shape=(64,))


@pytest.mark.parametrize(
    ("name", "dim", "size", "count"),
    [
        ("resnet50", 2048, 64, 23_522_375),
        ("vit_tiny_patch16_224", 192, 64, None),
    ],
)
def test_the_real_ones(name, dim, size, count):
    try:
        import_timm()
    except InputError as error:
        pytest.skip(str(error))
    network = make(f"timm/{name}", 7, shape=(3, size, size)).eval()
    x = torch.randn(2, 3, size, size)
    assert network.dim == dim
    assert network.embed(x).shape == (2, dim)
    assert torch.equal(network(x), network.classify(network.embed(x)))
    network(x).sum().backward()
    assert network.head.weight.grad is not None
    if count is not None:
        assert sum(weights.numel() for weights in network.parameters()) == count
