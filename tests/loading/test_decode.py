import warnings

import numpy as np
import pytest

from prune4rel.loading import read_image
from prune4rel.loading.source import BrokenImageError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)


def read_back(image, path, size=None, **options):
    image.save(path, **options)
    return read_image(path, size or (image.height, image.width))


def test_an_image_of_the_right_size_is_not_touched(pixels, tmp_path):
    read = read_back(Image.fromarray(pixels), tmp_path / "a.png")
    assert read.dtype == np.uint8
    assert np.array_equal(read, pixels)


def test_grey(pixels, tmp_path):
    grey = pixels[:, :, 0]
    assert np.array_equal(read_back(Image.fromarray(grey), tmp_path / "a.png"), np.stack([grey] * 3, axis=2))


def test_black_and_white(tmp_path):
    bits = np.array([[True, False], [False, True]])
    assert np.array_equal(read_back(Image.fromarray(bits), tmp_path / "a.png")[:, :, 1], bits * np.uint8(255))


def test_sixteen_bits_are_scaled_not_cut_off(tmp_path):
    deep = np.array([[0, 128, 129, 257], [32768, 65279, 65406, 65535]], dtype=np.uint16)
    expected = np.round(deep / 257).astype(np.uint8)
    assert np.array_equal(read_back(Image.fromarray(deep), tmp_path / "a.png")[:, :, 0], expected)
    assert np.array_equal(read_back(Image.fromarray(deep), tmp_path / "a.tif")[:, :, 2], expected)


def test_wide_integers_count_as_sixteen_bits(tmp_path):
    assert read_back(Image.fromarray(np.array([[65535, 0]], dtype=np.int32)), tmp_path / "a.tif")[0, 0, 0] == 255
    Image.fromarray(np.array([[65536, 0]], dtype=np.int32)).save(tmp_path / "b.tif")
    with pytest.raises(BrokenImageError, match=r"b\.tif: cannot be decoded \(its pixels have more than 16 bits"):
        read_image(tmp_path / "b.tif", (1, 2))


def test_floating_point_is_refused(tmp_path):
    Image.fromarray(np.zeros((2, 2), dtype=np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(BrokenImageError, match="floating-point"):
        read_image(tmp_path / "a.tif", (2, 2))


def test_transparency_lies_on_white(pixels, tmp_path):
    alpha = np.zeros((6, 5, 1), dtype=np.uint8)
    alpha[0] = 255
    alpha[1] = 128
    read = read_back(Image.fromarray(np.concatenate([pixels, alpha], axis=2)), tmp_path / "a.png")
    assert np.array_equal(read[0], pixels[0])
    half = pixels[1] * (128 / 255) + 255 * (127 / 255)
    assert np.abs(read[1] - half).max() <= 1
    assert (read[2:] == 255).all()


def test_grey_with_transparency(tmp_path):
    grey_alpha = np.array([[[10, 255], [10, 0]]], dtype=np.uint8)
    read = read_back(Image.fromarray(grey_alpha), tmp_path / "a.png")
    assert read.tolist() == [[[10, 10, 10], [255, 255, 255]]]


@pytest.mark.parametrize("transparent", [False, True])
def test_palette(tmp_path, transparent):
    image = Image.fromarray(np.array([[0, 1], [2, 0]], dtype=np.uint8))
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    read = read_back(image, tmp_path / "a.png", **({"transparency": 1} if transparent else {}))
    second = [255, 255, 255] if transparent else [0, 255, 0]
    assert read.tolist() == [[[255, 0, 0], second], [[0, 0, 255], [255, 0, 0]]]


@pytest.mark.parametrize("suffix", ["tif", "jpg"])
def test_cmyk(tmp_path, suffix):
    colour = Image.new("RGB", (16, 16), (200, 40, 90))
    read = read_back(colour.convert("CMYK"), tmp_path / f"a.{suffix}")
    assert np.abs(read.astype(int) - [200, 40, 90]).max() <= 4


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_undone(pixels, tmp_path, orientation):
    turned_back = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(a.transpose(1, 0, 2), 2),
        8: lambda a: np.rot90(a, 1),
    }[orientation](pixels)
    exif = Image.Exif()
    exif[0x0112] = orientation
    read = read_back(Image.fromarray(pixels), tmp_path / "a.png", size=turned_back.shape[:2], exif=exif)
    assert np.array_equal(read, turned_back)


def test_orientation_that_makes_no_sense_is_overlooked(pixels, tmp_path):
    read = read_back(Image.fromarray(pixels), tmp_path / "a.png", exif=b"Exif\x00\x00not a directory at all")
    assert np.array_equal(read, pixels)


def test_crop_takes_the_centre(tmp_path):
    pixels = np.zeros((4, 8, 3), dtype=np.uint8)
    pixels[:, 2:6] = 77
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert (read_image(tmp_path / "a.png", (4, 4)) == 77).all()
    assert not (read_image(tmp_path / "a.png", (4, 4), "stretch") == 77).all()


def test_crop_is_the_shorter_side_scaled_and_the_centre_of_it(tmp_path):
    smooth = np.linspace(0, 255, 90 * 60 * 3).reshape(90, 60, 3).astype(np.uint8)
    Image.fromarray(smooth).save(tmp_path / "a.png")
    by_steps = Image.fromarray(smooth).resize((20, 30), Image.Resampling.BILINEAR).crop((0, 5, 20, 25))
    read = read_image(tmp_path / "a.png", (20, 20))
    assert np.abs(read.astype(int) - np.asarray(by_steps).astype(int)).max() <= 1


@pytest.mark.parametrize("size", [(3, 3), (16, 8), (1, 40)])
@pytest.mark.parametrize("fit", ["crop", "stretch"])
@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 90, 3), (70, 2, 3)])
def test_any_size_becomes_the_wanted_one(tmp_path, size, fit, shape):
    Image.fromarray(np.full(shape, 9, dtype=np.uint8)).save(tmp_path / "a.png")
    read = read_image(tmp_path / "a.png", size, fit)
    assert read.shape == (*size, 3)
    assert (read == 9).all()


def test_a_huge_jpeg_is_decoded_at_a_fraction_and_looks_the_same(tmp_path):
    ramp = np.linspace(0, 255, 1600, dtype=np.uint8)
    Image.fromarray(np.broadcast_to(ramp[None, :, None], (1200, 1600, 3)).copy()).save(tmp_path / "a.jpg", quality=95)
    read = read_image(tmp_path / "a.jpg", (32, 32)).astype(int)
    full = Image.open(tmp_path / "a.jpg").resize((32, 32), Image.Resampling.BILINEAR, box=(200, 0, 1400, 1200))
    assert np.abs(read - np.asarray(full).astype(int)).max() <= 2


def test_a_bomb_is_refused(monkeypatch, tmp_path):
    Image.new("L", (40, 40)).save(tmp_path / "a.png")
    for limit in (1500, 100):  # where Pillow warns, and where it refuses
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(BrokenImageError, match=f"a.png: has more than {limit} pixels, .* decompression bomb"):
            read_image(tmp_path / "a.png", (8, 8))


def make_truncated(path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_flipped(path):
    Image.new("RGB", (64, 64), "red").save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("name", "spoil", "words"),
    [
        ("a.jpg", make_truncated, "cannot be decoded .*truncated"),
        ("a.png", make_truncated, "cannot be decoded"),
        ("a.png", make_flipped, "cannot be decoded"),
        ("a.png", lambda path: path.write_bytes(b""), "not an image"),
        ("a.jpg", lambda path: path.write_text("<html>404</html>"), "not an image"),
        ("a.jpg", lambda path: path.mkdir(), "cannot be read"),
        ("a.jpg", lambda _path: None, "no such file"),
    ],
)
def test_a_broken_file_is_named_with_the_reason(tmp_path, name, spoil, words):
    spoil(tmp_path / name)
    with pytest.raises(BrokenImageError, match=rf"{name}: {words}"):
        read_image(tmp_path / name, (8, 8))


def test_warnings_of_the_decoder_stay_inside(pixels, tmp_path):
    image = Image.fromarray(pixels[:, :, 0])
    image.putpalette(list(range(256)) * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_back(image, tmp_path / "a.png", transparency=bytes(range(256)))
