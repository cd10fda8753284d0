"""What is in a folder of images: classes, what cannot be read, copies, groups, labels that may be wrong."""

from ..core.extras import require

require("an audit", "scipy", "jinja2", "rich")

from .currency import SAW, Changes, changes_since
from .duplicates import Cluster
from .findings import Finding, Row
from .labels import Judgement, Suspect
from .names import Proposal
from .result import Audit
from .show import print_audit
from .whole import FEATURES, audit

__all__ = [
    "FEATURES",
    "SAW",
    "Audit",
    "Changes",
    "Cluster",
    "Finding",
    "Judgement",
    "Proposal",
    "Row",
    "Suspect",
    "audit",
    "changes_since",
    "print_audit",
]
