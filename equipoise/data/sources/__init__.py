"""Readers of data sets as their authors made them; importing this registers them."""

from . import blobs, cifar, digits, fashion_mnist, folder, svhn, tiny_imagenet
from ._base import Source, data_folders
from ._official import OFFICIAL, Official

__all__ = [
    "OFFICIAL",
    "Official",
    "Source",
    "blobs",
    "cifar",
    "data_folders",
    "digits",
    "fashion_mnist",
    "folder",
    "svhn",
    "tiny_imagenet",
]
