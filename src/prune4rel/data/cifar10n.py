"""CIFAR-10N: CIFAR-10 with labels from people."""

from pathlib import Path

from prune4rel.data.cifar import Edition, load_cifar
from prune4rel.data.dataset import Dataset
from prune4rel.data.registry import register_dataset

EDITION = Edition(
    name="cifar10n",
    folder="cifar-10-batches-py",
    address="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    train={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    },
    test={"test_batch": "40351d587109b95175f43aff81a1287e"},
    label_key="labels",
    meta=("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    names_key="label_names",
    human=("CIFAR-10_human.pt", "96644db5574813cae939af5f7f2a0aec"),
    noises={
        "worst": "worse_label",
        "aggre": "aggre_label",
        "random1": "random_label1",
        "random2": "random_label2",
        "random3": "random_label3",
        "clean": "clean_label",
    },
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
)


@register_dataset(
    "cifar10n",
    layout="""
    DATA/cifar-10-batches-py/   data_batch_1 ... data_batch_5, test_batch, batches.meta
    DATA/CIFAR-10_human.pt      from https://github.com/UCSC-REAL/cifar-10-100n
    """,
    citation="Krizhevsky, 2009; Wei et al., Learning with Noisy Labels Revisited, ICLR 2022",
    licence="human labels: CC BY-NC 4.0",
)
def load(root: Path, *, noise: str = "worst", md5: bool = True) -> Dataset:
    """CIFAR-10 with human labels, three people an image.

    50,000 training and 10,000 test images of 32 x 32 pixels in 10 classes.

    Parameters
    ----------
    noise
        Which labels: ``"worst"`` (a wrong one if any of the three is wrong: 40.21 % wrong), ``"aggre"`` (the
        majority: 9.01 %), ``"random1"``, ``"random2"``, ``"random3"`` (one person each: 17.23, 18.12, 17.64 %) or
        ``"clean"``, which does without the file of human labels.
    md5
        Whether to compare the files with the published sums first.
    """
    return load_cifar(EDITION, root, noise=noise, md5=md5)
