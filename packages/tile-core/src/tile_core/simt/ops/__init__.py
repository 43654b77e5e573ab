"""Lowerings of tile ops for targets whose threads execute in groups of a fixed width and can shuffle registers.

They are target-independent: a backend makes instances with its own name as the owner.
"""
