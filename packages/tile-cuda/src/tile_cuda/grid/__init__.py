"""Grids: persistent blocks, rasterization, and the L2 cache."""
