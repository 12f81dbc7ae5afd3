import pytest
from typer.testing import CliRunner

from prune4rel.cli import app
from prune4rel.cli import plan as _plan  # noqa: F401 - adds its verb to the app
from prune4rel.errors import InputError


def test_the_command_tells_it_all():
    words = "--n 1e9 --dim 768 --ratio 0.05 --nodes 64 --gpus-per-node 8"
    shown = CliRunner().invoke(app, ["plan", *words.split()], env={"COLUMNS": "200"}).stdout
    for word in (
        "tiles",
        "edges",
        "memory a node",
        "memory of the driver",
        "network",
        "hours",
        "bottleneck",
        "--engine ray",
    ):
        assert word in shown


@pytest.mark.parametrize(
    "words", ["--n 0 --dim 8", "--n 10 --dim 8 --ratio 2", "--n 10 --dim 8 --itemsize 3", "--n inf --dim 2"]
)
def test_the_command_refuses_nonsense(words):
    result = CliRunner().invoke(app, ["plan", *words.split()])
    assert isinstance(result.exception, InputError)


def test_the_cores_of_this_machine_can_be_timed_first(monkeypatch):
    from prune4rel.engines.ray.estimate import Rates

    monkeypatch.setattr("prune4rel.engines.ray.estimate.measured_rates", lambda: Rates(core=1e3))
    words = "--n 1e6 --dim 64 --exact --calibrate"
    shown = CliRunner().invoke(app, ["plan", *words.split()], env={"COLUMNS": "200"}).stdout
    assert "bottleneck" in shown
    assert "products" in shown.partition("bottleneck")[2]
