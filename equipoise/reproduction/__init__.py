"""Published numbers beside our own: small records of runs, the cells of papers' tables, and whether they agree."""

from ..core.extras import require

require("a comparison with published numbers", "scipy", "rich")

from .judgement import Judgement, judge, new_mean_interval
from .pages import Results, write_tables
from .published import Cell, Paper, read_paper, read_papers
from .records import RunRecord, StudyRecords, keep_records, read_records, records_of
from .training import train_missing
from .verify import Places, Verification, verify

__all__ = [
    "Cell",
    "Judgement",
    "Paper",
    "Places",
    "Results",
    "RunRecord",
    "StudyRecords",
    "Verification",
    "judge",
    "keep_records",
    "new_mean_interval",
    "read_paper",
    "read_papers",
    "read_records",
    "records_of",
    "train_missing",
    "verify",
    "write_tables",
]
