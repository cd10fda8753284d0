"""Runs whose networks are alike, trained as one network: a layer of all runs is one launch."""
