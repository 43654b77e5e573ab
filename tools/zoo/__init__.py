"""Kernels of every kind that people write, for the test-suites of backends: made, launched, changed, compared."""
