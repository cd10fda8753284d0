"""Doing runs: worker processes, one job, the display."""
