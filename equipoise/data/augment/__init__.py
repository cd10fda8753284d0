"""Augmentation of whole batches on their device, before normalisation."""

from ._base import Augment, NoAugment
from .autoaugment import AutoAugment, autoaugment
from .crop_flip import CropFlip, crop_flip
from .crops import Crops, augmented, crops_of
from .cutout import cutout
from .inputs import centre_crop, normalize, resize
from .resized_crop import ResizedCrop, resized_crop
from .rotation import Rotation, rotate

__all__ = [
    "Augment",
    "AutoAugment",
    "CropFlip",
    "Crops",
    "NoAugment",
    "ResizedCrop",
    "Rotation",
    "augmented",
    "autoaugment",
    "centre_crop",
    "crop_flip",
    "crops_of",
    "cutout",
    "normalize",
    "resize",
    "resized_crop",
    "rotate",
]
