"""Passes that lower a traced program, one per file; ``spine.py`` lists them."""
