"""Losses on hard labels, one a file, and the penalty on logits.

Every file of this folder is part of the package: what its `__all__` names can be imported from here.
"""

# ruff: noqa: F403, F405

import typing

from ..core import folders
from ._base import FusedLoss as FusedLoss
from ._base import Loss as Loss

if typing.TYPE_CHECKING:  # an editor does not walk the folder; it knows the names of the files listed here
    from .balanced_softmax import *
    from .cdt import *
    from .cross_entropy import *
    from .equalization import *
    from .focal import *
    from .label_smoothing import *
    from .ldam import *
    from .logit_adjusted import *
    from .logit_norm import *
    from .logit_penalty import *
    from .sigmoid import *
    from .sigmoid_focal import *
    from .squared_error import *

_found = folders.exported(__name__, __path__)
globals().update(_found)
__all__ = sorted(["FusedLoss", "Loss", *_found])
