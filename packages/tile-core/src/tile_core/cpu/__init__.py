"""The built-in backend: tile programs as vector code on this machine's processor cores.

It has the shape of any backend and enters through the same door (the entry point ``cpu`` of ``tile.backends``).
"""
