import pytest

from prune4rel.errors import InputError, nearest, refuse_unknown


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


def test_where_nothing_is_known_nothing_is_suggested():
    assert nearest("seed", []) == "there are none"


def test_options_nobody_has_are_refused():
    refuse_unknown("it", {"heat": 1}, {"heat": 0, "minutes": 0})
    with pytest.raises(InputError, match=r"it has no option 'heet'; did you mean 'heat'.*minutes") as refused:
        refuse_unknown("it", ["heat", "heet"], ["heat", "minutes"], "oven")
    assert refused.value.field == "oven"


def test_what_a_message_quotes_does_not_flood_a_terminal():
    told = str(InputError(f"a.yaml: data: must be a mapping, not {'x' * 10**6}; write it as name: value"))
    assert len(told) < 5_000
    assert told.startswith("a.yaml: data")
    assert told.endswith("; write it as name: value")
