"""A torchvision for GPUs beside a PyTorch without is made importable first: transformers imports it."""

from contextlib import suppress
from importlib.util import find_spec

from prune4rel import InputError
from prune4rel.networks.zoo import import_timm

if find_spec("torchvision") is not None:
    with suppress(InputError):
        import_timm()
