"""Whatever happens to a file of a run: it comes out the same, is mended with a word, or refused with one."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.pipeline.tiny import Ear, leavings, marks, redone, tiny
from tests.training.small import write_images

from prune4rel import InputError, Selection, contents
from prune4rel.pipeline import collect, run
from prune4rel.storage import read_arrays, write_arrays


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    home = tmp_path_factory.mktemp("whole") / "run"
    run(tiny(methods=("small-loss",)), home)
    SECONDS.update({name: json.loads((home / name / "step.json").read_text())["seconds"] for name in marks(home)})
    return home


SECONDS = {}


@pytest.fixture
def home(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def again(home, **options):
    ear = Ear()
    run(tiny(methods=("small-loss",)), home, progress=ear, **options)
    return ear.said


def the(home, pattern):
    (found,) = home.glob(pattern)
    return found


def flip(path, at=0.5):
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 4
    path.write_bytes(content)


def edit(name, change):
    def damage(home):
        folder = the(home, "warmups/*/signals")
        arrays = {key: np.array(value) for key, value in read_arrays(folder).items()}
        arrays[name] = change(arrays[name])
        shutil.rmtree(folder)
        write_arrays(folder, arrays)  # with fingerprints that fit

    return damage


def reverse_picks(home):
    path = the(home, "selections/*/selection.parquet")
    chosen = Selection.load(path)
    replace(chosen, indices=chosen.indices[::-1].copy()).save(path, force=True)


def others_picks(home):
    path = the(home, "selections/*/selection.parquet")
    chosen = Selection.load(path)
    Selection(np.arange(5), np.ones(5), 1.0, chosen.n, "uniform").save(path, force=True)


def remove(pattern):
    return lambda home: the(home, pattern).unlink()


def empty(pattern):
    return lambda home: the(home, pattern).write_bytes(b"")


def spoil(pattern):
    return lambda home: flip(the(home, pattern))


DAMAGE = {
    "labels edited": (edit("labels", lambda x: np.roll(x, 1)), "warmups"),
    "probabilities edited": (edit("probabilities", lambda x: x[::-1].copy()), "warmups"),
    "signs flipped": (edit("embeddings", lambda x: np.where(np.arange(x.shape[1]) < 4, -x, x)), "warmups"),
    "losses infinite": (edit("losses", lambda x: np.full_like(x, np.inf)), "warmups"),
    "signals gone": (lambda home: shutil.rmtree(the(home, "warmups/*/signals")), "warmups"),
    "a signal gone": (remove("warmups/*/signals/losses.npy"), "warmups"),
    "a signal empty": (empty("warmups/*/signals/losses.npy"), "warmups"),
    "a bit of a signal": (spoil("warmups/*/signals/embeddings.npy"), "warmups"),
    "picks reversed": (reverse_picks, "selections"),
    "other picks": (others_picks, "selections"),
    "picks gone": (remove("selections/*/selection.parquet"), "selections"),
    "picks empty": (empty("selections/*/selection.parquet"), "selections"),
    "model gone": (remove("trainings/*/model.safetensors"), "trainings"),
    "model empty": (empty("trainings/*/model.safetensors"), "trainings"),
    "a bit of the model": (spoil("trainings/*/model.safetensors"), "trainings"),
    "the card": (spoil("trainings/*/model.json"), "trainings"),
    "corrections gone": (remove("trainings/*/corrected_labels.parquet"), "trainings"),
    "a bit of corrections": (spoil("trainings/*/corrected_labels.parquet"), "trainings"),
    "result gone": (remove("trainings/*/result.json"), "trainings"),
    "result empty": (empty("trainings/*/result.json"), "trainings"),
    "a bit of the result": (spoil("trainings/*/result.json"), "trainings"),
    "metrics gone": (remove("trainings/*/metrics.jsonl"), "trainings"),
    "a bit of a record": (spoil("warmups/*/step.json"), "warmups"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_said_and_mended_by_the_one_step(home, kind):
    damage, place = DAMAGE[kind]
    before, inside = marks(home), leavings(home)
    damage(home)
    with pytest.raises(InputError, match=r"`prune4rel run --verify` on .* again"):
        collect(home)
    said = again(home)
    assert len([line for line in said if "is done again" in line]) == 1, said
    assert {name.partition("/")[0] for name in done_again(before, home)} == {place}
    assert leavings(home) == inside


def done_again(before, home):
    """Names of step folders that were made anew; a record of a copied folder is only stamped anew."""
    return {
        name
        for name in redone(before, home)
        if json.loads((home / name / "step.json").read_text())["seconds"] != SECONDS[name]
    }


def test_a_copied_folder_is_looked_through_once_and_nothing_is_done(home):
    inside = leavings(home)
    assert again(home) == []
    before = marks(home)
    assert again(home) == []
    assert (redone(before, home), leavings(home)) == (set(), inside)


def test_a_bit_that_turned_by_itself_is_found_by_those_who_look(home, monkeypatch):
    """Neither size nor time of the file changed."""
    assert again(home) == []
    monkeypatch.setattr("prune4rel.contents.stamp_of", lambda _: "the same")
    run(tiny(methods=("small-loss",)), home)
    inside = leavings(home)
    spoil("trainings/*/corrected_labels.parquet")(home)
    contents._print_since.cache_clear()
    assert again(home) == []
    contents._print_since.cache_clear()
    with pytest.raises(InputError, match=r"corrected_labels\.parquet: changed since it was written"):
        collect(home)
    contents._print_since.cache_clear()
    said = again(home, verify=True)
    assert "is done again" in said[0]
    assert leavings(home) == inside


def test_images_replaced_under_the_same_names_are_noticed_and_copies_are_not(tmp_path):
    write_images(tmp_path / "images", n=20)
    own = {"dataset": "folder", "options": {"image_size": 8}, "methods": ("small-loss",)}
    home = tmp_path / "run"

    def go(images):
        ear = Ear()
        run(tiny(**own, data=str(images)), home, progress=ear)
        return ear.said

    go(tmp_path / "images")
    before = marks(home)
    shutil.copytree(tmp_path / "images", tmp_path / "copies")
    shutil.rmtree(tmp_path / "images")
    assert go(tmp_path / "copies") == []
    assert redone(before, home) == set()
    victim, other = sorted((tmp_path / "copies").rglob("*.png"))[:2]
    known = victim.stat()
    victim.write_bytes(other.read_bytes())
    os.utime(victim, ns=(known.st_atime_ns, known.st_mtime_ns))
    said = go(tmp_path / "copies")
    assert any("data.files was" in line and "doing it again" in line for line in said)
    assert len(redone(before, home)) == 3
