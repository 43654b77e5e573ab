"""Lowerings of tile ops for targets with shuffles in groups of lanes.

They are target-independent: a backend makes instances with its own name as the owner.
"""
