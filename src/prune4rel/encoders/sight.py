"""What an encoder gets to see of an image: which part of it, how large, how normalised."""

from dataclasses import asdict, dataclass
from math import floor, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prune4rel.data.decode import Fit
from prune4rel.data.pixels import IMAGENET_MEAN, IMAGENET_STD, Colour
from prune4rel.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

LARGEST, LARGEST_SCALED = 4096, 16_384
LONGEST = 16
"""Times its width that an image is long before it is cut."""


@dataclass(frozen=True)
class Sight:
    """From an image to the square a model was made for.

    Parameters
    ----------
    size
        Height and width of the result.
    crop
        Share of the shorter side that is seen; the rest is cut off around the centre.
    fit
        ``"crop"`` keeps proportions; ``"stretch"`` takes the whole image, whatever its proportions.
    interpolation
        ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``, always with the smoothing that scaling down needs.
    mean, std
        Three numbers each, of red, green and blue between 0 and 1, that the model normalises with.

    Examples
    --------
    >>> from PIL import Image
    >>> Sight(size=8)(Image.new("RGB", (30, 20), "red")).shape
    (8, 8, 3)
    """

    size: int
    crop: float = 1.0
    fit: Fit = "crop"
    interpolation: str = "bilinear"
    mean: Colour = IMAGENET_MEAN
    std: Colour = IMAGENET_STD

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or not 1 <= self.size <= LARGEST:
            raise InputError(f"size must be a whole number from 1 to {LARGEST}, not {self.size!r}", "size")
        if not 0 < self.crop <= 1 or self.size / self.crop > LARGEST_SCALED:
            raise InputError(
                f"crop must be above 0 and at most 1, and size / crop at most {LARGEST_SCALED:,}, not {self.crop!r}",
                "crop",
            )
        for name in ("mean", "std"):
            colour = getattr(self, name)
            if len(colour) != 3 or not all(map(isfinite, colour)) or (name == "std" and 0 in colour):
                raise InputError(f"{name} must be three finite numbers, of std none 0, not {colour}", name)
        if self.interpolation not in ("bilinear", "bicubic", "lanczos"):
            raise InputError(
                f"interpolation must be bilinear, bicubic or lanczos, not {self.interpolation!r}", "interpolation"
            )
        if self.fit not in ("crop", "stretch"):
            raise InputError(f"fit must be crop or stretch, not {self.fit!r}", "fit")

    def __call__(self, image: "Image") -> NDArray[np.uint8]:
        """Turn an RGB image into (size, size, 3) uint8.

        The shorter side is scaled to floor(size / crop) and the centre cut out, as torchvision's Resize and CenterCrop
        do, to the pixel; what is many times as long as wide is cut first.
        """
        from PIL import Image as Pillow  # noqa: PLC0415 - an extra

        size, how = self.size, Pillow.Resampling[self.interpolation.upper()]
        if self.fit == "stretch":
            return np.asarray(image.resize((size, size), how))
        longest = LONGEST * min(image.size)
        if max(image.size) > longest:
            left, top = max(0, (image.width - longest) // 2), max(0, (image.height - longest) // 2)
            image = image.crop((left, top, left + min(longest, image.width), top + min(longest, image.height)))
        short = floor(size / self.crop)
        if image.width <= image.height:
            width, height = short, int(short * image.height / image.width)
        else:
            width, height = int(short * image.width / image.height), short
        left, top = round((width - size) / 2), round((height - size) / 2)
        if image.size != (width, height):
            image = image.resize((width, height), how)
        return np.asarray(image.crop((left, top, left + size, top + size)))

    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    @property
    def side(self) -> int:
        """Shortest side at which an image loses nothing here."""
        return floor(self.size / self.crop) * 2
