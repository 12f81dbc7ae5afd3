import pytest
import torch
from tests.loading.splits import feature_split, file_split, image_split, jitter, values

from prune4rel.errors import InputError
from prune4rel.loading import DeviceLoader, StreamLoader, loader, make_loader

ONE = 3 * 5 * 4


@pytest.mark.parametrize(
    ("budget", "options", "kind"),
    [
        (None, {}, DeviceLoader),
        (10 * ONE, {}, DeviceLoader),
        (10 * ONE - 1, {}, StreamLoader),
        ("1KB", {}, DeviceLoader),
        (3 * ONE, {"subset": [1, 5, 7]}, DeviceLoader),
        (0, {}, StreamLoader),
    ],
)
def test_on_the_device_if_it_fits(budget, options, kind):
    assert type(make_loader(image_split(10), "cpu", 4, 0, budget=budget, **options)) is kind


def test_features_count_four_bytes_a_number():
    assert type(make_loader(feature_split(10, d=6), "cpu", budget=240)) is DeviceLoader
    assert type(make_loader(feature_split(10, d=6), "cpu", budget=239)) is StreamLoader


def test_files_count_with_the_size_they_are_scaled_to(tmp_path):
    split = file_split(image_split(10), tmp_path)
    assert type(make_loader(split, "cpu", budget=10 * 3 * 64, size=8, workers=0)) is DeviceLoader
    assert type(make_loader(split, "cpu", budget=10 * 3 * 64 - 1, size=8, workers=0)) is StreamLoader


def test_the_choice_does_not_show_in_the_batches():
    def batches(budget):
        return values(make_loader(image_split(30), "cpu", 4, 9, budget=budget, transform=jitter, chunk=3))

    assert batches(0) == batches(None)


def test_half_of_what_is_free_may_be_taken(monkeypatch):
    monkeypatch.setattr(loader, "available_memory", lambda: 2 * 10 * ONE)
    assert type(make_loader(image_split(10), "cpu")) is DeviceLoader
    monkeypatch.setattr(loader, "available_memory", lambda: 2 * 10 * ONE - 2)
    assert type(make_loader(image_split(10), "cpu")) is StreamLoader
    monkeypatch.setattr(loader, "available_memory", lambda: 2 * 10 * ONE)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert type(make_loader(image_split(10), "cpu")) is StreamLoader
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (1000, 5000))
    assert loader._half_of_what_is_free(torch.device("cuda:0")) == 500


def test_a_device_as_torch_names_it():
    assert make_loader(image_split(10), torch.device("cpu")).device == torch.device("cpu")


def test_bad_subsets_are_refused_before_anything_is_read():
    with pytest.raises(InputError, match="holds 10"):
        make_loader(image_split(10), "cpu", subset=[10])
