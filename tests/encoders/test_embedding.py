import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from prune4rel import InputError, Signals
from prune4rel.data import Split
from prune4rel.data.decode import open_rgb
from prune4rel.encoders import embed, open_encoder
from prune4rel.encoders.embedding import write_embeddings
from prune4rel.encoders.sight import Sight
from prune4rel.progress import Progress

ROOT = Path(__file__).parents[2]


def colours(size=4, **options):
    return open_encoder("tests.encoders.own:colours", size=size, **options)


def one_by_one(split, encoder):
    """Embed example after example: slow, and obviously right."""
    rows = [encoder.encode([encoder.sight(open_rgb(file.read_bytes(), str(file)))]) for file in split.files]
    return np.concatenate(rows)


@pytest.fixture
def short_parts(monkeypatch):
    monkeypatch.setattr(sys.modules["prune4rel.encoders.embedding"], "ROWS", 8)


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_gives_what_one_example_after_another_gives(pictures, monkeypatch, threads, cache):
    monkeypatch.setenv("PRUNE4REL_THREADS", threads)
    encoder = colours()
    encoder.batch = 3
    expected = one_by_one(pictures, encoder)
    for _ in range(2):
        assert np.array_equal(embed(pictures, encoder, cache=cache), expected)
    images = np.stack([np.asarray(Image.open(file)) for file in pictures.files])
    assert np.array_equal(embed(Split(labels=pictures.labels, images=images), encoder), expected)


@pytest.mark.usefixtures("short_parts")
def test_a_folder_holds_signals_with_names(pictures, tmp_path):
    found = embed(pictures, colours(), tmp_path / "out", class_names=("cat", "dog"))
    signals = Signals.load(tmp_path / "out")
    assert np.array_equal(signals.embeddings, found)
    assert signals.ids.tolist() == [file.name for file in pictures.files]
    assert signals.class_names == ("cat", "dog")
    assert sorted(file.name for file in (tmp_path / "out").glob("*.parquet")) == [
        f"part-0000{k}.parquet" for k in range(3)
    ]
    card = json.loads((tmp_path / "out" / "embedding.json").read_text())
    assert card["encoder"]["sight"]["size"] == 4
    assert len(card["encoder"]["weights"]) == 32


def test_what_was_embedded_before_is_not_encoded_again(pictures, monkeypatch):
    encoder = colours()
    first = embed(pictures, encoder)

    def refuse(_batch):
        raise AssertionError("encoded again")

    again = colours()
    _ = again.dim
    monkeypatch.setattr(again, "encode", refuse)
    assert np.array_equal(embed(pictures.subset([3, 1]), again), first[[3, 1]])
    with pytest.raises(AssertionError, match="encoded again"):
        embed(pictures, again, cache=False)
    assert not np.array_equal(embed(pictures, colours(size=5)), first)  # another size is another encoder


def test_a_damaged_cache_is_passed_over(pictures, own_cache):
    first = embed(pictures, colours())
    for file in own_cache.rglob("*.npy"):
        file.write_bytes(file.read_bytes()[:70])
    assert np.array_equal(embed(pictures, colours()), first)


@pytest.mark.usefixtures("short_parts")
def test_broken_files_are_named_and_left_out(pictures, tmp_path):
    pictures.files[5].write_bytes(pictures.files[5].read_bytes()[:60])
    pictures.files[11].unlink()
    with pytest.raises(InputError, match=r"05\.png: .*; repair or remove it, or pass skip_broken"):
        embed(pictures, colours())
    broken = {}
    found = embed(pictures, colours(), skip_broken=True, broken=broken)
    assert list(broken) == [5, 11]
    assert "no such file" in broken[11]
    assert not found[[5, 11]].any()
    told = write_embeddings(pictures, colours(), tmp_path / "out", skip_broken=True)
    assert told == broken
    assert np.flatnonzero(~Signals.load(tmp_path / "out").known).tolist() == [5, 11]
    assert write_embeddings(pictures, colours(), tmp_path / "out", skip_broken=True) == broken  # and once more


def test_nothing_readable_is_refused(pictures):
    for file in pictures.files:
        file.write_bytes(b"no image")
    with pytest.raises(InputError, match=r"none of the 20 examples could be read; .*00\.png: not an image"):
        embed(pictures, colours(), skip_broken=True)


def test_another_encoder_or_other_examples_are_refused(pictures, tmp_path):
    embed(pictures, colours(), tmp_path / "out")
    with pytest.raises(InputError, match="holds embeddings of another encoder"):
        embed(pictures, colours(size=5), tmp_path / "out")
    pictures.files[0].write_bytes(pictures.files[1].read_bytes())
    with pytest.raises(InputError, match="other examples, or labels, or files that changed"):
        embed(pictures, colours(), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds something else"):
        embed(pictures, colours(), tmp_path / "other")


@pytest.mark.parametrize("card", ["", "{", "[]", "{}"])
def test_where_it_says_nothing_of_what_is_there_it_is_made_anew_if_so_told(pictures, tmp_path, card):
    found = embed(pictures, colours(), tmp_path / "out")
    (tmp_path / "out" / "embedding.json").write_text(card)
    with pytest.raises(InputError, match="--force"):
        embed(pictures, colours(), tmp_path / "out")
    write_embeddings(pictures, colours(), tmp_path / "out", force=True)
    assert np.array_equal(Signals.load(tmp_path / "out").embeddings, found)


@pytest.mark.parametrize("damage", [lambda part: part.write_bytes(part.read_bytes()[:-9]), lambda part: part.unlink()])
@pytest.mark.usefixtures("short_parts")
def test_parts_that_are_gone_or_damaged_are_made_again(pictures, tmp_path, damage):
    write_embeddings(pictures, colours(), tmp_path / "whole")
    write_embeddings(pictures, colours(), tmp_path / "mended")
    damage(tmp_path / "mended" / "part-00001.parquet")
    write_embeddings(pictures, colours(), tmp_path / "mended")
    assert_same_bytes(tmp_path / "whole", tmp_path / "mended")


def assert_same_bytes(one, other):
    names = sorted(file.name for file in one.iterdir())
    assert names == sorted(file.name for file in other.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


class StopAfter(Progress):
    """Kills this process when so many examples are done."""

    def __init__(self, count):
        self.left = count

    @contextmanager
    def task(self, name, total):
        del name, total
        yield self.advance

    def advance(self, amount):
        self.left -= amount
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


KILLED = """
import sys
import numpy as np
from pathlib import Path
import prune4rel.encoders.embedding
from prune4rel.data import Split
from prune4rel.encoders import open_encoder
from tests.encoders.test_embedding import StopAfter

module = sys.modules["prune4rel.encoders.embedding"]
module.ROWS = 8
files = tuple(sorted(Path(sys.argv[1]).glob("*.png")))
split = Split(labels=np.arange(len(files)) % 2, files=files, ids=np.array([file.name for file in files]))
encoder = open_encoder("tests.encoders.own:colours", size=4)
encoder.batch = 3
module.write_embeddings(split, encoder, sys.argv[2], progress=StopAfter(int(sys.argv[3])))
"""


@pytest.mark.usefixtures("short_parts")
def test_killed_at_any_time_it_ends_with_the_same_bytes(pictures, tmp_path):
    encoder = colours()
    encoder.batch = 3
    write_embeddings(pictures, encoder, tmp_path / "whole")
    for count in (9, 12):  # in the second part; after the last one, before the index
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(tmp_path / "out"), str(count)]
        done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "out" / "_signals.json").exists()
    write_embeddings(pictures, encoder, tmp_path / "out")
    assert_same_bytes(tmp_path / "whole", tmp_path / "out")


def test_vectors_and_the_wrong_kind_are_refused(pictures):
    with pytest.raises(InputError, match="vectors already"):
        embed(Split(labels=[0, 1], features=np.eye(2)), colours())
    with pytest.raises(InputError, match="encodes texts, but these examples are images"):
        embed(pictures, open_encoder("tfidf"))


def test_what_a_function_of_ones_own_raises_is_told(pictures):
    with pytest.raises(InputError, match=r"raised ZeroDivisionError: division by zero \(.*own\.py, line \d+\)"):
        embed(pictures, open_encoder("tests.encoders.own:broken", size=4), cache=False)


def test_what_is_no_number_is_named(pictures):
    with pytest.raises(InputError, match="gives NaN or infinity for example 0"):
        embed(pictures, open_encoder("tests.encoders.own:endless", size=4))


@pytest.mark.parametrize("shape", [(7, 20), (20, 7), (31, 31), (100, 64), (5, 5), (3, 200), (16, 16)])
@pytest.mark.parametrize("crop", [1.0, 0.875])
def test_any_image_becomes_a_square_of_the_right_size(shape, crop):
    """Of the middle: what lies in the centre stays there."""
    pixels = np.zeros((*shape, 3), dtype=np.uint8)
    pixels[shape[0] // 2 - 1 : shape[0] // 2 + 2, shape[1] // 2 - 1 : shape[1] // 2 + 2] = 255
    seen = Sight(size=16, crop=crop, interpolation="bicubic")(Image.fromarray(pixels))
    assert seen.shape == (16, 16, 3)
    assert seen[7:9, 7:9].mean() > 4 * seen.mean() * (1 if min(shape) > 5 else 0)
    assert Sight(size=16, fit="stretch")(Image.fromarray(pixels)).shape == (16, 16, 3)
