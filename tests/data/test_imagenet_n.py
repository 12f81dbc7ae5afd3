import numpy as np
import pytest

from prune4rel import InputError
from prune4rel.data import load_dataset


def test_labels_move_to_the_next_class_by_exact_counts(imagenet):
    data = load_dataset("imagenet-n", imagenet)
    assert data.class_names == ("n01440764", "n01443537", "n01484850")
    assert data.train.clean_labels.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    moved = data.train.labels != data.train.clean_labels
    assert np.bincount(data.train.clean_labels[moved]).tolist() == [2, 2, 2]
    assert (data.train.labels[moved] == (data.train.clean_labels[moved] + 1) % 3).all()
    assert data.test.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.train.files[0].name == "n01440764_0.JPEG"


def test_seed_rate_and_the_official_way_of_counting(imagenet):
    first, again, other = (load_dataset("imagenet-n", imagenet, seed=seed).train.labels.tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert load_dataset("imagenet-n", imagenet, noise=0.5).train.noise_rate == 0.5
    assert load_dataset("imagenet-n", imagenet, noise=0.3, per_class=False).train.noise_rate == pytest.approx(0.3)


def test_class_folders_that_differ_are_named(imagenet):
    (imagenet / "val" / "n99999999").mkdir()
    with pytest.raises(InputError, match=r"val: has the class folder 'n99999999', which .*train has not"):
        load_dataset("imagenet-n", imagenet)


def test_missing_folders(imagenet):
    (imagenet / "val").rename(imagenet / "validation")
    with pytest.raises(InputError, match="val: no such folder; expected train/ and val/"):
        load_dataset("imagenet-n", imagenet)


WNIDS = ("n01440764", "n01443537", "n01484850")


def flatten(imagenet):
    """Put all validation images into one folder; returns the class of each, by name."""
    classes = {}
    for path in sorted((imagenet / "val").rglob("*.JPEG")):
        classes[path.stem] = path.parent.name
        path.rename(imagenet / "val" / path.name)
    for wnid in WNIDS:
        (imagenet / "val" / wnid).rmdir()
    return classes


def write_solution(path, classes):
    lines = [f"{stem},{wnid} 1 2 3 4 {wnid} 5 6 7 8 " for stem, wnid in reversed(classes.items())]
    path.write_text("\n".join(["ImageId,PredictionString", *lines]) + "\n")


@pytest.mark.parametrize("place", [".", "val"])
def test_flat_validation_images_with_kaggles_list(imagenet, place):
    sorted_by_class = load_dataset("imagenet-n", imagenet)
    classes = flatten(imagenet)
    write_solution(imagenet / place / "LOC_val_solution.csv", classes)
    data = load_dataset("imagenet-n", imagenet)
    assert [file.stem for file in data.test.files] == sorted(classes)
    assert data.test.labels.tolist() == [WNIDS.index(classes[file.stem]) for file in data.test.files]
    assert data.test.clean_labels.tolist() == data.test.labels.tolist()
    assert data.train.labels.tolist() == sorted_by_class.train.labels.tolist()


@pytest.mark.parametrize("deep", [False, True])
def test_kaggles_own_layout(imagenet, deep):
    classes = flatten(imagenet)
    inside = imagenet / "ILSVRC" / "Data" / "CLS-LOC"
    inside.mkdir(parents=True)
    for split in ("train", "val"):
        (imagenet / split).rename(inside / split)
    write_solution(imagenet / "LOC_val_solution.csv", classes)
    data = load_dataset("imagenet-n", inside if deep else imagenet)
    assert data.test.labels.tolist() == [WNIDS.index(classes[file.stem]) for file in data.test.files]


def test_flat_validation_images_with_the_development_kit(imagenet):
    from scipy.io import savemat

    order = (WNIDS[1], WNIDS[2], WNIDS[0])
    classes = flatten(imagenet)
    kit = imagenet / "ILSVRC2012_devkit_t12" / "data"
    kit.mkdir(parents=True)
    lines = [str(1 + order.index(classes[stem])) for stem in sorted(classes)]
    (kit / "ILSVRC2012_validation_ground_truth.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"ground_truth.txt: numbers its classes as meta.mat of the development kit"):
        load_dataset("imagenet-n", imagenet)
    wanted = [WNIDS.index(classes[stem]) for stem in sorted(classes)]
    (kit / "synsets.txt").write_text("\n".join(f"{wnid} words" for wnid in order))
    assert load_dataset("imagenet-n", imagenet).test.labels.tolist() == wanted
    (kit / "synsets.txt").write_text("\n".join(WNIDS))
    with pytest.raises(InputError, match=r"synsets.txt: is sorted by name, but .* goes by the numbers of the develop"):
        load_dataset("imagenet-n", imagenet)
    synsets = np.zeros(4, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])
    for row, wnid in enumerate([*order, "n00000000"]):
        synsets[row] = (row + 1, wnid, "words")
    savemat(kit / "meta.mat", {"synsets": synsets})
    assert load_dataset("imagenet-n", imagenet).test.labels.tolist() == wanted
    (kit / "meta.mat").write_bytes(b"nonsense" * 40)
    with pytest.raises(InputError, match=r"meta.mat: not the meta.mat of ImageNet's development kit"):
        load_dataset("imagenet-n", imagenet)


def spoil(classes, how):
    first = next(iter(classes))
    if how == "unknown class":
        return classes | {first: "n99999999"}
    if how == "image too few":
        return {stem: wnid for stem, wnid in classes.items() if stem != first}
    return classes | {"ILSVRC2012_val_99999999": WNIDS[0]}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("unknown class", r"LOC_val_solution.csv: has images of the class 'n99999999', which the training images have"),
        ("image too few", r"LOC_val_solution.csv: no label for 'ILSVRC2012_val_00000000', which .*val lists"),
        ("image too many", r"ILSVRC2012_val_99999999.JPEG: no such file; 1 of the 7 files in .*csv are missing"),
    ],
)
def test_lists_that_do_not_fit_the_images_are_refused(imagenet, how, words):
    write_solution(imagenet / "LOC_val_solution.csv", spoil(flatten(imagenet), how))
    with pytest.raises(InputError, match=words):
        load_dataset("imagenet-n", imagenet)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n", r"begins with 'a,b'; expected 'ImageId,PredictionString'"),
        ("ImageId,PredictionString\nx\n", r"line 2 is 'x'; expected an image, a comma and a class"),
        ("ImageId,PredictionString\nx, \n", r"line 2 is 'x, '; expected an image"),
    ],
)
def test_lists_of_another_kind_are_refused(imagenet, content, words):
    flatten(imagenet)
    (imagenet / "LOC_val_solution.csv").write_text(content)
    with pytest.raises(InputError, match=words):
        load_dataset("imagenet-n", imagenet)


@pytest.mark.parametrize(
    ("lines", "words"), [(["1"] * 5, "has 5 lines, but there are 6 images"), (["1"] * 5 + ["4"], "line 6 is '4'")]
)
def test_ground_truth_that_does_not_fit_is_refused(imagenet, lines, words):
    flatten(imagenet)
    (imagenet / "ILSVRC2012_validation_ground_truth.txt").write_text("\n".join(lines))
    (imagenet / "synsets.txt").write_text("\n".join(reversed(WNIDS)))
    with pytest.raises(InputError, match=words):
        load_dataset("imagenet-n", imagenet)


def test_without_any_list_both_ways_out_are_named(imagenet):
    flatten(imagenet)
    with pytest.raises(InputError, match=r"val: the images lie here directly. Sort them .*LOC_val_solution.csv"):
        load_dataset("imagenet-n", imagenet)
