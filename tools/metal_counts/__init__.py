"""Costs of Metal kernels: counts of emitted texts beside hand-written ones."""
