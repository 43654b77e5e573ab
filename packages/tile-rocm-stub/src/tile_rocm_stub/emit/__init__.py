"""Kernels as HIP: the functions that a text may have, and the printer."""
