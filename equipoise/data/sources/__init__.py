"""Readers of data sets as their authors made them. Every file of this folder is imported, which registers its sets."""

from ...core import folders
from ._base import Source, data_folders
from ._official import OFFICIAL, Official

folders.exported(__name__, __path__)

__all__ = ["OFFICIAL", "Official", "Source", "data_folders"]
