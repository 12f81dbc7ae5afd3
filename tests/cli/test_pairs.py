import pytest

from prune4rel import InputError
from prune4rel.cli.pairs import read_pairs, read_value


def test_pairs_and_values():
    assert read_pairs(None, "--option") == {}
    assert read_pairs(["a-b=c=d"], "--option") == {"a_b": "c=d"}
    assert [read_value(text) for text in ("3", "1.5", "true", "null", "worst")] == [3, 1.5, True, None, "worst"]


@pytest.mark.parametrize("item", ["a", "=b", "a="])
def test_what_is_no_pair(item):
    with pytest.raises(InputError, match="--option takes NAME=VALUE"):
        read_pairs([item], "--option")
