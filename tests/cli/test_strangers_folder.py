"""Working in a folder of somebody else runs nothing that lies about there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import prune4rel
from prune4rel import InputError
from prune4rel.encoders import open_encoder
from prune4rel.encoders.sentence_transformers import _refuse_code

TOUCH = "from pathlib import Path\nPath('owned').touch()\n"
SOURCE = str(Path(prune4rel.__file__).parents[1])


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("evil", "umap", "tqdm", "struct", "pickle"):
        Path(f"{name}.py").write_text(TOUCH)
    home = Path("evil-1.0.dist-info")
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    groups = ("methods", "datasets", "encoders", "learners", "engines")
    (home / "entry_points.txt").write_text("".join(f"[prune4rel.{group}]\nevil = evil:f\n" for group in groups))
    return tmp_path


def started(*words):
    """Run Python in the folder; the package is found by PYTHONPATH, where it need not be installed."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("verb", ["methods", "datasets", "encoders"])
def test_no_entry_point_in_the_current_folder_is_loaded(verb):
    Path("struct.py").unlink()
    Path("pickle.py").unlink()  # nothing is in between where Python itself imports these
    found = started("-m", "prune4rel", verb)
    assert found.returncode == 0, found.stderr
    assert not Path("owned").exists()


@pytest.mark.usefixtures("place")
def test_worker_processes_import_nothing_from_the_current_folder():
    code = (
        "import sys; sys.path.remove(''); sys.argv = ['prune4rel', '--version']\n"
        "from prune4rel.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import multiprocessing\n"
        "worker = multiprocessing.get_context('spawn').Process(target=print)\n"
        "worker.start(); worker.join(); sys.exit(worker.exitcode)\n"
    )
    found = started("-c", code)
    assert found.returncode == 0, found.stderr
    assert not Path("owned").exists()


@pytest.mark.usefixtures("place")
def test_an_encoder_of_ones_own_is_imported_by_its_path_alone():
    before = list(sys.path)
    Path("mine.py").write_text("import numpy as np\ndef f(batch):\n    return np.ones((len(batch), 2))\n")
    assert open_encoder("mine:f").dim == 2
    assert sys.path == before
    Path("theirs.py").write_text("import evil\ndef f(batch):\n    return None\n")
    with pytest.raises(InputError, match="cannot import 'evil'"):
        open_encoder("theirs:f")
    assert not Path("owned").exists()
    for name in ("mine", "theirs"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("modules.json", '[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]'),
        ("config.json", '{"auto_map": {"AutoModel": "evil.Evil"}}'),
        ("0/router_config.json", '{"types": {"a": "evil.Evil"}}'),
        ("modules.json", '[{"type": "evil.Evil"}]' + 2**21 * " "),
        ("modules.json", '[{"type": "sentence_transformers.util.subprocess"}]'),
        ("1_Dense/config.json", '{"activation_function": "os.abort"}'),
        ("sentence_bert_config.json", '{"model_args": {"trust_remote_code": true}}'),
    ],
)
def test_a_folder_of_weights_names_no_code(tmp_path, name, text):
    (tmp_path / "0").mkdir()
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Pooling"}]')
    (tmp_path / "tokenizer.json").write_text('{"normalizer": {"type": "BertNormalizer"}, "vocab": {"type": 3}}')
    _refuse_code(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="names code of its own"):
        _refuse_code(tmp_path)
