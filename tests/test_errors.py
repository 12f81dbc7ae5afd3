import pytest

from prune4rel.errors import InputError, nearest


def test_input_error_is_a_value_error_that_may_name_its_field():
    assert isinstance(InputError("no"), ValueError)
    assert InputError("no").field is None
    assert InputError("no", "labels").field == "labels"


@pytest.mark.parametrize(
    ("name", "words"),
    [("papr", "did you mean 'paper'? Known: paper, coverage"), ("xyz", "Known: paper, coverage")],
)
def test_nearest_name_is_suggested_where_there_is_one(name, words):
    assert nearest(name, ["paper", "coverage"]) == words
