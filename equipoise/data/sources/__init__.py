"""Readers of data sets as their authors made them; importing this registers them."""

from . import blobs, cifar, digits, fashion_mnist, folder
from ._base import Source, data_folders

__all__ = ["Source", "blobs", "cifar", "data_folders", "digits", "fashion_mnist", "folder"]
