import numpy as np
import pytest

from prune4rel.data import load_dataset
from prune4rel.recipes.catalogue import RECIPES
from prune4rel.recipes.jobs import Settings
from prune4rel.recipes.setting import SOURCES
from prune4rel.recipes.smoke import TEST, N, pictures, stand_in


@pytest.mark.parametrize("classes", [10, 100, 1000])
def test_stand_ins_can_be_read(classes, tmp_path):
    np.savez(tmp_path / "a.npz", **pictures(classes))
    data = load_dataset("arrays", tmp_path / "a.npz")
    assert (data.n_classes, len(data.train), len(data.test)) == (classes, N, TEST)
    assert data.train.noise_rate == pytest.approx(0.3)


def test_label_sets_differ():
    assert (pictures(10, 0)["labels"] != pictures(10, 1)["labels"]).any()


def test_every_data_set_of_every_recipe_has_one(tmp_path):
    cells = [cell for recipe in RECIPES.values() for cell in recipe.cells]
    settings = stand_in(cells, tmp_path, Settings(seeds=1))
    assert len(settings.stand_in) == sum(len(labels) for one in SOURCES.values() for labels in one.labels.values())
    assert all(path.is_file() for path in settings.stand_in.values())
    assert (settings.options["device"], settings.options["network"], settings.seeds) == ("cpu", "mlp", 1)


def test_stand_ins_are_not_written_twice(tmp_path):
    cells = RECIPES["fig4"].cells
    (path,) = stand_in(cells, tmp_path, Settings()).stand_in.values()
    before = path.stat().st_mtime_ns
    stand_in(cells, tmp_path, Settings())
    assert path.stat().st_mtime_ns == before
