"""Reading a folder runs no code of its maker, whatever lies in it and beside us."""

import json
import sys
from copy import copy
from pathlib import Path

import pytest
import yaml
from tests.cli.here import call
from tests.pipeline.tiny import tiny

from prune4rel import Config, InputError
from prune4rel.cli.run import finish
from prune4rel.methods import method
from prune4rel.pipeline import collect, run
from prune4rel.progress import Progress

EVIL = """
from pathlib import Path
Path("owned").touch()
import prune4rel as p4r
from prune4rel.methods.ranking import keep_best

@p4r.register_method("evil", needs=("losses",), cost="one pass")
def f(signals, request, *, power=1.0):
    'Keep those with the lowest loss.'
    return keep_best(signals.losses ** power, signals.labels, request, keep="lowest")
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to work in, with a file of code, and others called as packages that are imported late."""
    monkeypatch.chdir(tmp_path)
    method.list_methods()  # finds all that come along, before there is a copy to be thrown away
    monkeypatch.setattr(method, "METHODS", copy(method.METHODS))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])  # as the command leaves it
    Path("evil.py").write_text(EVIL)
    Path("evil").mkdir()
    Path("evil/x.py").write_text(EVIL)
    for name in ("umap", "pandas", "tqdm"):
        Path(f"{name}.py").write_text("from pathlib import Path\nPath('owned').touch()\n")
    yield tmp_path
    sys.modules.pop("evil", None)


@pytest.fixture
def finished(place):
    run(tiny(methods=["uniform"]), "run")
    return place / "run"


def rewrite(folder, methods):
    values = yaml.safe_load((folder / "config.yaml").read_text())
    (folder / "config.yaml").write_text(yaml.safe_dump(values | {"methods": methods}))


METHODS = [
    ["evil:f"],
    "evil:f",
    ["uniform", "evil:f"],
    [{"method": "evil:f", "label": "uniform"}],
    {"method": "evil:f"},
    ["evil:f/official"],
    [{"method": "evil/x:f"}],
    ["os.path:join"],
]


def test_a_report_imports_nothing_a_folder_names(finished):
    before = list(sys.path)
    for methods in METHODS:
        rewrite(finished, methods)
        with pytest.raises(InputError, match="is code, which is not run because a file names it"):
            collect(finished)
    assert not Path("owned").exists()
    assert sys.path == before


@pytest.mark.parametrize("methods", METHODS, ids=str)
def test_a_configuration_imports_nothing_it_names(place, monkeypatch, capsys, methods):
    (place / "theirs.yaml").write_text(yaml.safe_dump({"methods": methods}))
    with pytest.raises(InputError, match="is code, which is not run because a file names it"):
        Config.load("theirs.yaml")
    code, _, err = call(monkeypatch, capsys, "run", "--config", "theirs.yaml", "--output", "out")
    assert code == 2
    assert "--code" in err
    assert not Path("owned").exists()


def test_what_a_manifest_says_runs_nothing_either(finished):
    rewrite(finished, ["evil:f"])
    manifest = json.loads((finished / "manifest.json").read_text())
    own = {"evil:f": {"name": "evil", "needs": ["losses"], "balances": True, "code": "0" * 64}}
    for said in (own, {"evil:f": {}}, {"evil:f": 5}, 5, {"evil:f": {**own["evil:f"], "needs": 7}}):
        (finished / "manifest.json").write_text(json.dumps(manifest | {"own": said}))
        with pytest.raises(InputError, match=r"no training is finished there|own.evil|own must be|is code"):
            collect(finished)
    assert not Path("owned").exists()


def test_ones_own_code_runs_where_it_is_named_and_is_not_needed_to_report(place):
    before = list(sys.path)
    run(tiny(methods=["evil:f"]), "run")
    assert Path("owned").exists()
    Path("owned").unlink()
    sys.modules.pop("evil")
    Path("evil.py").unlink()
    finish(place / "run", Progress(), quiet=True)
    assert [cell.label for cell in collect("run").cells] == ["evil"]
    assert not Path("owned").exists()
    assert sys.path == before


@pytest.mark.usefixtures("place")
def test_a_configuration_may_name_code_that_the_command_line_names_too():
    Path("mine.yaml").write_text(yaml.safe_dump({"methods": [{"method": "evil:f", "options": {"power": 2.0}}]}))
    config = Config.load("mine.yaml", code=["evil:f"])
    assert [spec.label for spec in config.specs] == ["evil (power=2.0)"]
    assert Path("owned").exists()
