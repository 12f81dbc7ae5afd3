import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.training.small import digits, features, nothing, trainer_of
from torch import nn

from prune4rel import InputError
from prune4rel.inference.model import CARD, WEIGHTS, save_model
from prune4rel.networks import make, make_from_file
from prune4rel.reading import seal, unseal
from prune4rel.training import Model, load_model

IMAGES = {"network": "mlp", "options": {"width": 4}, "shape": [3, 8, 8], "mean": [0.5] * 3, "std": [0.25] * 3}
FEATURES = {"network": "mlp", "options": {"width": 4}, "shape": [6], "mean": [1.0] * 6, "std": [2.0] * 6}
NAMES = ["cat", "dog", "ca\udcfft"]


def save(folder, card, networks=2, names=NAMES):
    torch.manual_seed(0)
    made = nn.ModuleList(make("mlp", len(names), shape=tuple(card["shape"]), width=4) for _ in range(networks))
    save_model(folder, made, {**card, "class_names": names})
    return made


def test_images_come_back_with_the_same_answers(tmp_path):
    networks = save(tmp_path, IMAGES)
    images = digits().train.images[:7]
    x = (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25
    logits = torch.stack([network(x) for network in networks]).mean(0)
    for place in (tmp_path, str(tmp_path), tmp_path / WEIGHTS):
        model = load_model(place)
        np.testing.assert_allclose(model.probabilities(images), torch.softmax(logits, 1).detach(), atol=1e-6)
        np.testing.assert_allclose(model.probabilities(images, batch=2), model.probabilities(images), atol=1e-6)
        assert model.predict(images).tolist() == logits.argmax(1).tolist()
        assert model.class_names == tuple(NAMES)
        assert not model.training


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int64])
def test_features_of_any_type(tmp_path, kind):
    (network,) = save(tmp_path, FEATURES, networks=1)
    values = np.arange(24).reshape(4, 6).astype(kind)
    expected = torch.softmax(network((torch.from_numpy(values).float() - 1) / 2), 1)
    np.testing.assert_allclose(load_model(tmp_path).probabilities(values), expected.detach(), atol=1e-6)


def test_no_inputs_no_answers(tmp_path):
    save(tmp_path, FEATURES)
    model = load_model(tmp_path)
    assert model.probabilities(np.empty((0, 6))).shape == (0, 3)
    assert model.predict(np.empty((0, 6))).shape == (0,)


def test_memory_maps_that_cannot_be_written_are_fine(tmp_path):
    save(tmp_path, IMAGES)
    np.save(tmp_path / "x.npy", digits().train.images[:3])
    assert load_model(tmp_path).predict(np.load(tmp_path / "x.npy", mmap_mode="r")).shape == (3,)


@pytest.mark.parametrize(
    ("card", "inputs", "message"),
    [
        (IMAGES, np.zeros((2, 3, 8, 8), np.uint8), r"takes uint8 of shape \(n, 8, 8, 3\), not uint8 of shape \(2, 3"),
        (IMAGES, np.zeros((2, 8, 8, 3)), "takes uint8 .* not float64"),
        (FEATURES, np.zeros((2, 5)), r"takes numbers of shape \(n, 6\), not"),
        (FEATURES, np.array([["a"] * 6]), "takes numbers"),
    ],
)
def test_other_inputs_are_refused(tmp_path, card, inputs, message):
    save(tmp_path, card)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path).probabilities(inputs)


def test_an_unfinished_training_has_no_model(tmp_path):
    with pytest.raises(InputError, match="is the training finished"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", [WEIGHTS, CARD])
def test_broken_files_are_refused(tmp_path, name):
    save(tmp_path, IMAGES)
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=r"not a readable card|safetensors: changed since it was written"):
        load_model(tmp_path)
    if name == WEIGHTS:
        card = unseal(json.loads((tmp_path / CARD).read_text(encoding="utf-8")), CARD)
        (tmp_path / CARD).write_text(json.dumps({key: value for key, value in card.items() if key != "sha256"}))
        with pytest.raises(InputError, match="not a readable file of weights"):
            load_model(tmp_path)


@pytest.mark.parametrize(
    "change", [{"networks": 3}, {"class_names": ["one"]}, {"shape": None}, {"options": {"width": 5}}]
)
def test_cards_of_other_weights_are_refused(tmp_path, change):
    save(tmp_path, IMAGES)
    card = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    (tmp_path / CARD).write_text(json.dumps(card | change))
    with pytest.raises(InputError, match=r"model\.json: changed since it was written"):
        load_model(tmp_path)
    (tmp_path / CARD).write_text(json.dumps(seal(card | change)))
    with pytest.raises(InputError, match=r"do not go together|must be"):
        load_model(tmp_path)


def test_weights_that_were_once_downloaded_are_not_downloaded_again(tmp_path, monkeypatch):
    asked = []

    def watching(name, n_classes, **options):
        asked.append(set(options))
        return make(name, n_classes, **options)

    save(tmp_path, {**IMAGES, "options": {"width": 4, "pretrained": True, "checkpoint_path": "start.pth"}})
    monkeypatch.setattr("prune4rel.networks.network.make", watching)
    load_model(tmp_path)
    assert asked
    assert all(options == {"shape", "width"} for options in asked)


class Body(nn.Module):
    def __init__(self, in_chans, num_classes, drop_rate=0.0):
        super().__init__()
        self.num_features, self.drop_rate = 6, drop_rate
        self.convolution = nn.Conv2d(in_chans, 6, 1 + num_classes)

    def forward(self, x):
        return self.convolution(x).mean((2, 3))


@pytest.fixture
def timm(monkeypatch):
    """A module that unpickles whatever file it is told of, as timm did."""

    def create_model(_name, *, checkpoint_path=None, pretrained=False, pretrained_cfg_overlay=None, **options):
        file = checkpoint_path or (pretrained and (pretrained_cfg_overlay or {}).get("file"))
        if file:
            torch.load(file, weights_only=False)
        return Body(**options)

    module = SimpleNamespace(
        is_model=lambda name: name == "resnet50",
        list_models=lambda *_: ["resnet50"],
        get_pretrained_cfg=lambda _: SimpleNamespace(fixed_input_size=False, classifier="fc"),
        create_model=create_model,
    )
    monkeypatch.setitem(sys.modules, "timm", module)


class Touch:
    """Pickled, it makes a file when it is loaded."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return (open, (str(self.file), "w"))


PHOTOS = {"network": "timm/resnet50", "shape": [3, 8, 8], "mean": [0.5] * 3, "std": [0.25] * 3, "class_names": ["a"]}


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize(
    "options",
    [
        {"checkpoint_path": "evil.pth"},
        {"checkpoint_path": "evil.pth", "pretrained": False},
        {"pretrained": True, "pretrained_cfg_overlay": {"file": "evil.pth"}},
        {"pretrained": True, "pretrained_cfg": {"file": "evil.pth"}},
        {"cache_dir": "evil.pth"},
        {"drop_rate": "evil.pth"},
        {"drop_rate": 2},
        {"drop_rate": True},
        {"drop_rate": float("nan")},
        {"img_size": 10**9},
        {"img_size": [8, 8, 8]},
        {"features_only": True},
        {"global_pool": ["avg"]},
    ],
)
def test_no_option_of_a_card_runs_code_or_reads_another_file(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Touch(tmp_path / "owned")}, "evil.pth")
    save_model(tmp_path, nn.ModuleList([make("timm/resnet50", 1, shape=(3, 8, 8))]), {**PHOTOS, "options": options})
    if set(options) <= {"checkpoint_path", "pretrained"}:  # where the training started, which is over
        assert load_model(tmp_path).predict(np.zeros((1, 8, 8, 3), np.uint8)).tolist() == [0]
    else:
        with pytest.raises(InputError, match=r"option .* is not taken from a file|cannot be"):
            load_model(tmp_path)
    assert not (tmp_path / "owned").exists()


@pytest.mark.usefixtures("timm")
@pytest.mark.parametrize("network", ["timm/hf-hub:a/b", "timm/local-dir:x", "timm/../resnet50", "timm/", 5, None])
def test_no_name_in_a_card_leads_elsewhere(tmp_path, network):
    save_model(tmp_path, nn.ModuleList([make("timm/resnet50", 1)]), {**PHOTOS, "network": network, "options": {}})
    with pytest.raises(InputError, match=r"do not go together|must be"):
        load_model(tmp_path)


@pytest.mark.usefixtures("timm")
def test_options_that_shape_a_model_of_timm_are_taken(tmp_path):
    card = {**PHOTOS, "options": {"drop_rate": 0.25}}
    save_model(tmp_path, nn.ModuleList([make("timm/resnet50", 1, drop_rate=0.25)]), card)
    assert load_model(tmp_path).networks[0].body.drop_rate == 0.25


@pytest.mark.parametrize("width", [10**12, 4097, -1, "4", [4], None, 1e300])
def test_networks_without_end_are_refused_before_they_are_made(tmp_path, width):
    save(tmp_path, {**IMAGES, "options": {"width": width}})
    with pytest.raises(InputError, match="do not go together"):
        load_model(tmp_path)


@pytest.mark.parametrize("change", [{"networks": 10**9}, {"shape": [3, 10**6, 10**6]}, {"shape": [6, 8]}])
def test_cards_without_end_are_refused_before_anything_is_allocated(tmp_path, change):
    save(tmp_path, IMAGES)
    card = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    (tmp_path / CARD).write_text(json.dumps(card | change))
    with pytest.raises(InputError, match=r"model\.json: changed since it was written"):
        load_model(tmp_path)
    (tmp_path / CARD).write_text(json.dumps(seal(card | change)))
    with pytest.raises(InputError, match=r"do not go together|must be"):
        load_model(tmp_path)


def test_a_model_is_a_module():
    trainer = trainer_of(features())
    trainer.training.run_epoch(nothing)
    model = Model(trainer.training.learner.model_networks(), {**FEATURES, "class_names": ["a", "b", "c"]})
    assert model(torch.zeros(2, 6)).shape == (2, 3)
    assert sum(p.numel() for p in model.parameters()) > 0


@pytest.mark.usefixtures("timm")
def test_what_cannot_be_looked_at_before_it_is_made_is_not_made_in_sizes_of_a_file(tmp_path, monkeypatch):
    card = {**PHOTOS, "options": {}}
    save_model(tmp_path, nn.ModuleList([make("timm/resnet50", 1)]), card)
    known = make_from_file

    def needs_memory(*args):
        if torch.empty(0).device.type == "meta":
            raise NotImplementedError
        return known(*args)

    monkeypatch.setattr("prune4rel.inference.model.make_from_file", needs_memory)
    load_model(tmp_path)
    card = unseal(json.loads((tmp_path / CARD).read_text(encoding="utf-8")), CARD)
    (tmp_path / CARD).write_text(json.dumps(seal({**card, "options": {"embed_dim": 4096, "depth": 4096}})))
    with pytest.raises(InputError, match="cannot be made as large"):
        load_model(tmp_path)
