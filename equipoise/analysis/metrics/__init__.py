"""How good predictions are: accuracy, calibration, robustness."""
