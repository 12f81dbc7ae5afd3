import sys

import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data.pixels import as_rgb, measure_colours, require_pillow, to_rgb


def test_grey_rgba_and_sixteen_bits_become_rgb(rng):
    rgb = rng.integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    assert as_rgb(rgb, "images") is rgb
    assert (as_rgb(rgb[..., 0], "images") == rgb[..., :1]).all()
    assert (as_rgb(rgb[..., :1], "images") == rgb[..., :1]).all()
    opaque = np.concatenate([rgb, np.full_like(rgb[..., :1], 255)], axis=3)
    assert (as_rgb(opaque, "images") == rgb).all()
    assert (as_rgb(opaque * np.array([1, 1, 1, 0], dtype=np.uint8), "images") == 255).all()
    assert (as_rgb(rgb.astype(np.uint16) * 257, "images") == rgb).all()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 4, 4, 3)), r"type float64.*astype\('uint8'\)"),
        (np.zeros((2, 3, 8, 8), dtype=np.uint8), r"transpose\(0, 2, 3, 1\)"),
        (np.zeros((2, 9, 9, 7), dtype=np.uint8), "expected"),
        (np.zeros((2, 9), dtype=np.uint8), "expected"),
    ],
)
def test_other_shapes_and_types_are_refused_with_the_remedy(images, message):
    with pytest.raises(InputError, match=message):
        as_rgb(images, "images")


def test_colours_are_measured_as_numpy_does(rng):
    images = rng.integers(0, 256, (50, 6, 7, 3), dtype=np.uint8)
    mean, std = measure_colours(images)
    flat = images.reshape(-1, 3) / 255
    np.testing.assert_allclose(mean, flat.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(std, flat.std(axis=0), atol=1e-4)


def test_one_colour_has_no_zero_deviation():
    assert min(measure_colours(np.full((3, 2, 2, 3), 9, dtype=np.uint8))[1]) > 0


def test_sixteen_bit_pictures_are_scaled_not_cut():
    Image = pytest.importorskip("PIL.Image")
    grey = Image.fromarray(np.array([[0, 257 * 100, 65535]], dtype=np.uint16))
    assert np.asarray(to_rgb(grey))[0, :, 0].tolist() == [0, 100, 255]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "CMYK"])
def test_every_usual_kind_of_picture_becomes_rgb(mode):
    Image = pytest.importorskip("PIL.Image")
    assert to_rgb(Image.new(mode, (2, 2))).mode == "RGB"


def test_transparency_lies_on_white_as_pillow_does_it(rng):
    Image = pytest.importorskip("PIL.Image")
    image = Image.fromarray(rng.integers(0, 256, (30, 30, 4), dtype=np.uint8))
    white = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    assert np.abs(np.asarray(to_rgb(image)).astype(int) - np.asarray(white)).max() <= 1


@pytest.mark.parametrize(("mode", "value", "message"), [("F", 0.5, "floating-point"), ("I", 70_000, "more than 16")])
def test_pictures_of_unknown_brightness_are_refused(mode, value, message):
    Image = pytest.importorskip("PIL.Image")
    with pytest.raises(ValueError, match=message):
        to_rgb(Image.new(mode, (2, 2), value))


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"reading needs Pillow, .* pip install 'prune4rel\[vision\]'"):
        require_pillow("reading")
