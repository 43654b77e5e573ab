"""A small backend on the core's CPU path: target, variant, name of ``T``."""
