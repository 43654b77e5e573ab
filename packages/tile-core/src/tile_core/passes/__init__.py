"""Passes from a traced program to loops of one target's kind: one pass per file; ``spine.py`` is the list."""
