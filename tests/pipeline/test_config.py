import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from prune4rel import InputError
from prune4rel.pipeline import Config
from prune4rel.pipeline.config import parse_duration, read_yaml
from prune4rel.steps.options import declared

BAD = [
    ({"ratios": 2}, "ratios: each must be above 0 and at most 1, not 2"),
    ({"ratios": [0.2, 0]}, "not 0"),
    ({"ratios": [True]}, "not True"),
    ({"ratios": float("nan")}, "not nan"),
    ({"ratios": "0.1,0.2"}, "not '0.1,0.2'"),
    ({"ratios": {"a": 1}}, "ratios: each"),
    ({"ratios": []}, "ratios: is empty"),
    ({"ratios": [0.2, 0.2]}, "0.2 is there twice"),
    ({"seeds": 0}, "seeds: must be a whole number of at least 1, not 0"),
    ({"seeds": 1.5}, "seeds"),
    ({"seeds": True}, "seeds"),
    ({"seeds": None}, "seeds"),
    ({"seed": -1}, "seed: must be a whole number of at least 0"),
    ({"views": 0}, "views"),
    ({"repeats": "two"}, "repeats"),
    ({"parallel": 0}, "parallel"),
    ({"epochs": 0}, "epochs: must be a whole number of at least 1"),
    ({"epochs": "ten"}, "epochs"),
    ({"warmup_epochs": 0.5}, "warmup_epochs"),
    ({"methods": None}, "methods: is empty"),
    ({"methods": ["prune4real"]}, "did you mean 'prune4rel'"),
    ({"methods": ["prune4rel/offical"]}, "did you mean 'official'"),
    ({"methods": ["uniform/coverage"]}, "'uniform' has no option 'preset'"),
    ({"methods": [["uniform"]]}, "a mapping with 'method'"),
    ({"methods": [{"label": "x"}]}, "a mapping with 'method'"),
    ({"methods": [5]}, "a mapping with 'method'"),
    ({"methods": ["uniform", "uniform"]}, "'uniform' is there twice; give one of them another label"),
    ({"methods": ["top-score"]}, "needs scores, which no warm-up provides"),
    ({"methods": [{"method": "uniform", "learners": ["elrr"]}]}, "unknown learner 'elrr'"),
    ({"methods": np.datetime64("2020-01-01")}, "may hold texts, numbers"),
    ({"learners": "sopp"}, "did you mean 'sop"),
    ({"learners": [5]}, "5"),
    ({"learners": ["sop", "sop"]}, "'sop' is there twice"),
    ({"learners": []}, "learners: is empty"),
    ({"warmup_learner": "elrr"}, "did you mean 'elr'"),
    ({"warmup_learner": 5}, "warmup_learner: must be a text, not 5"),
    ({"learner_options": {"sopp": {}}}, "did you mean 'sop"),
    ({"learner_options": {"sop": 5}}, "learner_options: sop must be a mapping"),
    ({"options": None}, "options: must be a mapping of names to values, not None"),
    ({"training": [1]}, "training: must be a mapping"),
    ({"look": {"cutout": {1, 2}}}, "look: may hold texts, numbers"),
    ({"balanced": "yes"}, "balanced: must be true or false, not 'yes'"),
    ({"everything": 1}, "everything: must be true or false"),
    ({"skip_broken": 0}, "skip_broken"),
    ({"select_only": None}, "select_only"),
    ({"dataset": 5}, "dataset: must be a text, not 5"),
    ({"data": 5}, "data: must be a text"),
    ({"labels": ["a"]}, "labels: must be a text"),
    ({"network": 18}, "network: must be a text"),
    ({"device": None}, "device: must be a text"),
    ({"title": 1.0}, "title: must be a text"),
    ({"view": "storng"}, "did you mean 'strong'"),
    ({"view": 3}, "view: must be a text"),
    ({"extras": ["forgeting"]}, "did you mean 'forgetting'"),
    ({"extras": 5}, "extras: unknown 5"),
    ({"views": 10**30}, "views: must be a whole number of at most 1000"),
    ({"seed": 2**63}, "seed: must be a whole number of at most"),
    ({"metods": []}, "unknown key 'metods'; did you mean 'methods'"),
    ({1: 2}, "unknown key 1"),
]


@pytest.mark.parametrize(("values", "words"), BAD, ids=lambda value: str(value)[:40])
def test_bad_values_are_refused_in_words(values, words):
    with pytest.raises(InputError) as error:
        Config.from_dict(values, "here: ")
    assert words in str(error.value)
    assert str(error.value).startswith("here: ")
    assert "\n" not in str(error.value)


def test_one_value_counts_as_a_list_of_one():
    config = Config(methods="uniform", ratios=1, learners="sop", extras="aum")
    assert (config.methods, config.ratios, config.learners, config.extras) == (("uniform",), (1.0,), ("sop",), ("aum",))
    assert Config(methods={"method": "uniform", "label": "chance"}).specs[0].label == "chance"


def test_numbers_of_numpy_can_be_saved(tmp_path):
    config = Config(ratios=[np.float64(0.25)], training={"lr": np.float32(0.5)}, look={"mean": (1, 2)})
    config.save(tmp_path / "config.yaml")
    assert Config.load(tmp_path / "config.yaml") == config


TEXT = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    [
        "yes",
        "null",
        "~",
        "1e3",
        "0x1f",
        "- a",
        "a: b",
        "#",
        "2020-01-01",
        "\x00",
        "\x85",
        "\ufeff",
        "\udcff",
        "'\"",
        "",
        " ",
    ]
)
VALUE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
OPTIONS = st.dictionaries(
    TEXT, VALUE | st.lists(VALUE, max_size=3) | st.dictionaries(TEXT, VALUE, max_size=2), max_size=3
)


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate))  # YAML is slow
@given(
    title=st.none() | TEXT,
    data=st.none() | TEXT,
    options=OPTIONS,
    training=OPTIONS,
    ratios=st.lists(st.floats(0, 1, exclude_min=True), min_size=1, max_size=3, unique=True),
    labels=st.lists(TEXT.filter(lambda text: text not in ("", "everything")), min_size=1, max_size=3, unique=True),
    everything=st.booleans(),
    seeds=st.integers(1, 10**9),
)
def test_yaml_brings_everything_back(tmp_path_factory, labels, **values):
    methods = [{"method": "uniform", "label": label} for label in labels]
    config = Config(methods=methods, **values)
    path = tmp_path_factory.getbasetemp() / "round trip.yaml"
    config.save(path)
    assert Config.load(path) == config
    assert Config.from_dict(config.as_dict()) == config


def test_changes_win_over_the_file(tmp_path):
    Config(seeds=3, ratios=(0.1,)).save(tmp_path / "c.yaml")
    assert Config.load(tmp_path / "c.yaml", {"seeds": 5}) == Config(seeds=5, ratios=(0.1,))


def test_every_key_says_what_it_is():
    for field in declared(Config):
        assert field.metadata["about"].endswith(".")


def test_the_page_lists_every_key_and_its_default():
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, flags=re.MULTILINE))
    assert list(rows) == [field.name for field in declared(Config)]
    for name, value in Config().as_dict().items():
        words = (
            ("none", "the preset's")
            if value is None
            else (f"`{yaml.safe_dump(value, default_flow_style=True).split(chr(10))[0]}`",)
        )
        assert rows[name] in words


def test_the_example_on_the_page_is_a_configuration():
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    labels = [spec.label for spec in Config.from_dict(yaml.safe_load(example)).specs]
    assert labels == ["uniform", "wide", "small-loss (unbalanced)", "with sop+ only"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"\x80\x04\x95\xff\x00", "not a readable YAML"),
        (b"a: [1, 2", "not a readable YAML"),
        (b"!!python/object/apply:os.system ['true']", "not a readable YAML"),
        (b"- a\n- b\n", "holds no names and values"),
        (b"just words", "holds no names and values"),
        (b"a\x07b: 1", "not a readable YAML"),
        (b"null: 1", "None is no name of an option"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, content, words):
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        read_yaml(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_an_empty_file_changes_nothing(tmp_path):
    (tmp_path / "c.yaml").write_text("# nothing yet\n")
    assert Config.load(tmp_path / "c.yaml") == Config()


def test_a_folder_is_no_configuration(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path)


def test_the_saved_file_is_plain_yaml(tmp_path):
    Config(methods=["uniform", {"method": "prune4rel", "options": {"tau": 0.9}}]).save(tmp_path / "c.yaml")
    found = yaml.safe_load((tmp_path / "c.yaml").read_text())
    assert found["methods"] == ["uniform", {"method": "prune4rel", "options": {"tau": 0.9}}]
    assert list(found) == [field.name for field in declared(Config)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2h", 7200),
        ("90min", 5400),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("45", 45),
        ("1d", 86400),
        (" 2 H ", 7200),
        ("0.5s", 0.5),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "two hours", "-1h", "0", "0s", "1h-2m", "1e3", "nan", "1w", "2h x", "1..5h", "5."]
)
def test_what_is_no_duration(text):
    with pytest.raises(InputError, match=r"duration|above 0"):
        parse_duration(text)
