"""Grids: persistent blocks and the L2 cache."""
