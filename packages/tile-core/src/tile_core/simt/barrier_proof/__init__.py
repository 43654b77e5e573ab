"""Proof of the barriers, copies and waits of emitted kernels."""
