"""Rank tile shapes of a user's factory: ``tile.tilings``."""
