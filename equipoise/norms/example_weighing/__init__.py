"""Inference that counts the example itself in the moving averages."""
