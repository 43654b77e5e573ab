"""Passes that lower a traced program to loops for one kind of target, one pass per file; ``spine.py`` lists them."""
