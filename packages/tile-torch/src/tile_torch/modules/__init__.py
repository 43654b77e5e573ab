"""Layers whose weights are 2:4 sparse, of 8-bit floats, or of four bits."""
