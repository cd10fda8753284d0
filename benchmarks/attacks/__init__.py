"""Attacks on the tool, one a file; `benchmarks/attack.py` runs them."""
