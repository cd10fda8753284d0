"""Runs whose networks are alike, trained as one network on a GPU: a layer of all runs is one launch."""

from .stack import Stack, stacks_of, why_not_stacked

__all__ = ["Stack", "stacks_of", "why_not_stacked"]
