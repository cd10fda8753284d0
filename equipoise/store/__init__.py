"""5 · Records: what came out of each run, and the folder that keeps them."""

from .analysis import Analysis
from .audited import Audited
from .confused import Confused, ConfusedPair
from .convergence import Convergence, LongerRun
from .damage import Damaged, explained
from .documents import Compared, Comparison, MethodDocument, Opened, Opening, StudyDocument, StudyHead
from .record import SCHEMA, Record, check_schema
from .sensitivity import Sensitivity
from .store import Store, now

__all__ = [
    "SCHEMA",
    "Analysis",
    "Audited",
    "Compared",
    "Comparison",
    "Confused",
    "ConfusedPair",
    "Convergence",
    "Damaged",
    "LongerRun",
    "MethodDocument",
    "Opened",
    "Opening",
    "Record",
    "Sensitivity",
    "Store",
    "StudyDocument",
    "StudyHead",
    "check_schema",
    "explained",
    "now",
]
