import pytest
import torch

from prune4rel.augment import AUTO_AUGMENT_CIFAR10, AutoAugment, Operation, RandAugment, magnitude_of
from prune4rel.augment.policies import SIGNED
from prune4rel.errors import InputError

COUNT = 200_000
PUBLISHED = """\
Invert 0.1 7 Contrast 0.2 6
Rotate 0.7 2 TranslateX 0.3 9
Sharpness 0.8 1 Sharpness 0.9 3
ShearY 0.5 8 TranslateY 0.7 9
AutoContrast 0.5 8 Equalize 0.9 2
ShearY 0.2 7 Posterize 0.3 7
Color 0.4 3 Brightness 0.6 7
Sharpness 0.3 9 Brightness 0.7 9
Equalize 0.6 5 Equalize 0.5 1
Contrast 0.6 7 Sharpness 0.6 5
Color 0.7 7 TranslateX 0.5 8
Equalize 0.3 7 AutoContrast 0.4 8
TranslateY 0.4 3 Sharpness 0.2 6
Brightness 0.9 6 Color 0.2 6
Solarize 0.5 2 Invert 0.0 3
Equalize 0.2 0 AutoContrast 0.6 0
Equalize 0.2 8 Equalize 0.6 4
Color 0.9 9 Equalize 0.6 6
AutoContrast 0.8 4 Solarize 0.2 8
Brightness 0.1 3 Color 0.7 0
Solarize 0.4 5 AutoContrast 0.9 3
TranslateY 0.9 9 TranslateY 0.7 9
AutoContrast 0.9 2 Solarize 0.8 3
Equalize 0.8 8 Invert 0.1 3
TranslateY 0.7 9 AutoContrast 0.9 1"""


def far(share, expected, count):
    """Whether a share is more than five standard deviations from what is expected."""
    return abs(share - expected) > 5 * (expected * (1 - expected) / count) ** 0.5 + 1e-12


@pytest.fixture(scope="module")
def operations():
    return AutoAugment().draw(COUNT, torch.Generator().manual_seed(0))


def test_the_table_is_the_published_one():
    names = {operation.name.replace("_", "").lower(): operation for operation in Operation}
    rows = []
    for line in PUBLISHED.split("\n"):
        first, p, level, second, q, other_level = line.split()
        pair = ((names[first.lower()], float(p), int(level)), (names[second.lower()], float(q), int(other_level)))
        rows.append(pair)
    assert tuple(rows) == AUTO_AUGMENT_CIFAR10


def test_both_operations_of_every_pair_come_together_as_often_as_they_should(operations):
    expected = torch.zeros(len(Operation), len(Operation), dtype=torch.float64)
    for (first, p, _), (second, q, _) in AUTO_AUGMENT_CIFAR10:
        expected[first, second] += p * q / 25
        expected[first, Operation.IDENTITY] += p * (1 - q) / 25
        expected[Operation.IDENTITY, second] += (1 - p) * q / 25
        expected[Operation.IDENTITY, Operation.IDENTITY] += (1 - p) * (1 - q) / 25
    together = operations.codes[:, 0] * len(Operation) + operations.codes[:, 1]
    shares = torch.bincount(together, minlength=expected.numel()).double() / COUNT
    for share, wanted in zip(shares.tolist(), expected.flatten().tolist(), strict=True):
        assert not far(share, wanted, COUNT)
        assert (share == 0) == (wanted == 0)


def test_magnitudes_are_those_of_the_table(operations):
    allowed = {operation: {0.0} for operation in Operation}
    for pair in AUTO_AUGMENT_CIFAR10:
        for operation, _, level in pair:
            size = magnitude_of(operation, level)
            allowed[operation] |= {size, -size} if operation in SIGNED else {size}
    for code, magnitude in set(
        zip(operations.codes.flatten().tolist(), operations.magnitudes.flatten().tolist(), strict=True)
    ):
        assert magnitude in allowed[Operation(code)]


def test_signs_are_balanced_and_only_where_they_belong(operations):
    signed = torch.isin(operations.codes, torch.tensor(sorted(SIGNED)))
    negative = operations.magnitudes < 0
    assert not (negative & ~signed).any()
    for operation in set(operations.codes[signed].tolist()):
        chosen = operations.codes == operation
        assert not far(negative[chosen].double().mean().item(), 0.5, int(chosen.sum()))


@pytest.mark.parametrize(("rounds", "level"), [(1, 0), (2, 9), (3, 5), (2, 3.3)])
def test_rand_augment_draws_all_fourteen_alike(rounds, level):
    drawn = RandAugment(rounds, level).draw(COUNT // rounds, torch.Generator().manual_seed(0))
    total = drawn.codes.numel()
    assert drawn.codes.shape == (COUNT // rounds, rounds)
    shares = torch.bincount(drawn.codes.flatten(), minlength=len(Operation)).double() / total
    assert shares[Operation.INVERT] == 0
    for operation in set(Operation) - {Operation.INVERT}:
        chosen = drawn.codes == operation
        assert not far(shares[operation].item(), 1 / 14, total)
        sizes = drawn.magnitudes[chosen]
        assert (sizes.abs() == magnitude_of(operation, level)).all()
        if operation in SIGNED and level:
            assert not far((sizes < 0).double().mean().item(), 0.5, len(sizes))
        else:
            assert (sizes >= 0).all()


def test_rounds_are_drawn_one_by_one():
    codes = RandAugment(2, 5).draw(COUNT, torch.Generator().manual_seed(0)).codes
    assert not far((codes[:, 0] == codes[:, 1]).double().mean().item(), 1 / 14, COUNT)


def test_a_policy_of_ones_own():
    policy = AutoAugment((((Operation.ROTATE, 1.0, 10), (Operation.INVERT, 0.0, 0)),))
    drawn = policy.draw(1000, torch.Generator().manual_seed(0))
    assert drawn.codes.unique(dim=0).tolist() == [[Operation.ROTATE, Operation.IDENTITY]]
    assert drawn.magnitudes[:, 0].abs().unique().tolist() == [30.0]


@pytest.mark.parametrize("count", [0, 1])
def test_none_and_one(count):
    for policy in (AutoAugment(), RandAugment()):
        assert len(policy.draw(count, torch.Generator())) == count


@pytest.mark.parametrize(("rounds", "level", "message"), [(0, 5, "rounds"), (2, 11, "level"), (2, -1, "level")])
def test_bad_options(rounds, level, message):
    with pytest.raises(InputError, match=message):
        RandAugment(rounds, level)
