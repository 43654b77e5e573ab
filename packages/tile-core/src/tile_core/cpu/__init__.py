"""The built-in backend: tile programs as vector code on this machine's processor cores.

It is an ordinary backend, registered like any other (the entry point ``cpu`` of ``tile.backends``).
"""
