import pytest

import prune4rel as p4r
from prune4rel import InputError
from prune4rel.encoders import default_encoder, get, list_encoders, open_encoder


def test_the_list_is_public_and_has_the_defaults():
    assert {"tfidf", "wordllama", "timm/NAME", "onnx:FILE", "run:FOLDER"} <= set(p4r.list_encoders())
    assert p4r.list_encoders("onnx*") == ["onnx:FILE"]
    for kind in ("images", "files", "texts"):
        assert get(default_encoder(kind)).kind == ("texts" if kind == "texts" else "images")


def test_every_family_has_words_for_people():
    for form in list_encoders():
        family = get(form)
        assert family.form == form
        assert len(family.summary) > 20
        assert family.kind in ("images", "texts", "images or texts")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("tfdif", {}, "unknown encoder 'tfdif'; did you mean 'tfidf'"),
        ("tfidf/large", {}, "write it as tfidf"),
        ("timm", {}, "write it as timm/NAME"),
        ("onnx:", {}, "write it as onnx:FILE"),
        ("onnx:absent.onnx", {}, "absent.onnx: no such file"),
        ("tfidf", {"dims": 3}, "has no option 'dims'; did you mean 'dim'"),
        ("tfidf", {"size": 3}, "encodes texts; size is for images"),
        ("tfidf", {"weights": "absent.bin"}, "absent.bin: no such file or folder"),
        ("tfidf", {"weights": "pyproject.toml"}, "leave weights out"),
        ("tfidf", {"dim": 0}, "dim must be"),
        ("no_such_file:f", {}, "cannot import 'no_such_file'"),
        ("tests.encoders.own:nothing", {}, "has no 'nothing'"),
        ("tests.encoders.own:not_a_function", {}, "is no function"),
        ("run:absent", {}, "absent: no such folder"),
        ("run:tests", {}, "which training"),
        ("", {}, "named by a string"),
        (None, {}, "named by a string"),
    ],
)
def test_what_cannot_be_opened_is_explained(name, options, words):
    if name in ("run:absent", "run:tests"):
        pytest.importorskip("torch")
    if str(name).startswith("onnx:a"):
        pytest.importorskip("onnxruntime")
    with pytest.raises(InputError, match=words):
        open_encoder(name, **options)
