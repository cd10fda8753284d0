"""Equipoise: image classifiers that treat their classes evenly, and evidence for what a data set wants.

Each part works alone: ``from equipoise.losses import LDAMLoss`` needs torch and numpy, nothing else.
"""

__version__ = "0.1.0"
