"""Tuning with equal budgets: every method, the baseline included, gets the same number of trials on validation data.

space → search (grid, optuna) → trial (a score from validation curves) → method (a budget) → drive → outcome.
"""
