import pytest
from typer.testing import CliRunner

from prune4rel import InputError
from prune4rel.cli import app, learners  # noqa: F401 - the second adds its verb to the app
from prune4rel.learners import list_learners


def run(*arguments):
    done = CliRunner().invoke(app, ["learners", *arguments], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_all_learners_are_listed_with_what_they_do_and_take():
    said = run()
    assert all(f"{name} " in said for name in list_learners())
    assert "consistency" in said
    assert "prune4rel learners NAME" in said


def test_one_learner_in_full():
    said = run("elr+")
    for words in ("elr+", "Parameters", "lambda_elr=3.0", "from: Liu et al."):
        assert words in said


def test_an_unknown_one_is_pointed_to_the_nearest():
    with pytest.raises(InputError, match="did you mean 'dividemix'"):
        run("divide-mix")
