"""Normalization: layers, one per file; example weighing and surgery on any network; what decays, and what it reaches.

Every file of this folder is part of the package: what its `__all__` names can be imported from here.
"""

# ruff: noqa: F403, F405

import typing

from ..core import folders

if typing.TYPE_CHECKING:  # an editor does not walk the folder; it knows the names of the files listed here
    from .advice import *
    from .batch import *
    from .batch_group import *
    from .batch_renorm import *
    from .decay import *
    from .example_weighing import *
    from .ghost import *
    from .group import *
    from .output_range import *
    from .paths import *
    from .surgery import *

_found = folders.exported(__name__, __path__)
globals().update(_found)
__all__ = sorted(_found)
