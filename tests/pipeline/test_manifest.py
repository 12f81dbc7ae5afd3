import json

import pytest
from tests.pipeline.tiny import Ear

from prune4rel import InputError, __version__
from prune4rel.pipeline.manifest import open_manifest, read_manifest, write_manifest
from prune4rel.progress import Progress


def test_a_new_folder_gets_a_new_manifest(tmp_path):
    assert read_manifest(tmp_path) is None
    (tmp_path / ".lock").touch()
    fresh = open_manifest(tmp_path, restart=False, progress=Progress())
    assert fresh["versions"]["prune4rel"] == __version__
    write_manifest(tmp_path, fresh | {"path": "\udcff"})
    assert read_manifest(tmp_path) == fresh | {"path": "\udcff"}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": 1}', b'{"versions": {}}', b'{"format": 1, "versions": []}', b"\xff\xfe"],
)
def test_what_is_no_manifest(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest\.json: "):
        open_manifest(tmp_path, restart=False, progress=Progress())


@pytest.mark.parametrize("restart", [False, True])
def test_a_folder_of_another_format_is_left_alone(tmp_path, restart):
    (tmp_path / "trainings").mkdir()
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99, "versions": {"prune4rel": "7.0"}}))
    with pytest.raises(InputError, match=r"written by version 7\.0 of prune4rel.*format 99, here 1"):
        open_manifest(tmp_path, restart=restart, progress=Progress())
    assert (tmp_path / "trainings").exists()


def test_a_folder_of_another_version_is_gone_on_with_in_so_many_words(tmp_path):
    versions = {"prune4rel": "0.0.1"}
    write_manifest(tmp_path, {"format": 1, "versions": versions, "begun": "long ago"})
    ear = Ear()
    found = open_manifest(tmp_path, restart=False, progress=ear)
    assert ear.said == [f"{tmp_path}: begun by version 0.0.1 of prune4rel, going on with {__version__}"]
    assert (found["begun"], found["versions"]["prune4rel"]) == ("long ago", __version__)


def test_restarting_clears_what_was_done(tmp_path):
    write_manifest(tmp_path, open_manifest(tmp_path, restart=False, progress=Progress()))
    for name in ("warmups", "trainings", "mine"):
        (tmp_path / name).mkdir()
    open_manifest(tmp_path, restart=True, progress=Progress())
    assert {path.name for path in tmp_path.iterdir()} == {"manifest.json", "mine"}
