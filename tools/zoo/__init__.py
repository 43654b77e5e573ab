"""Typical kernels of every kind for backends' tests: made, launched, mutated, compared."""
