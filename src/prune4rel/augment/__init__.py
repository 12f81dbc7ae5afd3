"""Augmentations of whole batches of images, on the CPU and on CUDA, each as Pillow has it; and of feature vectors.

What is random is drawn first, from a generator you hold; applying it is then a pure function of tensors. Images are
(B, 3, H, W), or (B, 1, H, W) if grey; uint8 with levels from 0 to 255, or floating point with levels / 255.
"""

from prune4rel.augment.draws import Draws, View, ViewName
from prune4rel.augment.features import FeatureView
from prune4rel.augment.mixup import Mixture, draw_mixture, mix
from prune4rel.augment.pixels import normalise
from prune4rel.augment.policies import (
    AUTO_AUGMENT_CIFAR10,
    AutoAugment,
    Operation,
    Operations,
    Policy,
    RandAugment,
    apply_operations,
    magnitude_of,
)
from prune4rel.augment.transforms import (
    auto_contrast,
    brightness,
    color,
    contrast,
    equalize,
    invert,
    posterize,
    rotate,
    sharpness,
    shear_x,
    shear_y,
    solarize,
    translate_x,
    translate_y,
    warp,
)
from prune4rel.augment.views import (
    Centres,
    Frames,
    PlainView,
    StrongView,
    Views,
    WeakView,
    crop_and_mirror,
    cutout,
    draw_centres,
    draw_frames,
)

__all__ = [
    "AUTO_AUGMENT_CIFAR10",
    "AutoAugment",
    "Centres",
    "Draws",
    "FeatureView",
    "Frames",
    "Mixture",
    "Operation",
    "Operations",
    "PlainView",
    "Policy",
    "RandAugment",
    "StrongView",
    "View",
    "ViewName",
    "Views",
    "WeakView",
    "apply_operations",
    "auto_contrast",
    "brightness",
    "color",
    "contrast",
    "crop_and_mirror",
    "cutout",
    "draw_centres",
    "draw_frames",
    "draw_mixture",
    "equalize",
    "invert",
    "magnitude_of",
    "mix",
    "normalise",
    "posterize",
    "rotate",
    "sharpness",
    "shear_x",
    "shear_y",
    "solarize",
    "translate_x",
    "translate_y",
    "warp",
]
