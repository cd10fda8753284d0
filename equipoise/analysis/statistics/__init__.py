"""Whether a difference is real: tests, intervals, power, verdicts."""
