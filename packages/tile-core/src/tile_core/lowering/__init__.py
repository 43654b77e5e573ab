"""Choosing how a tile op is lowered: what a variant is, what it can do, and which one is taken."""
