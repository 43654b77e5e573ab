"""Launches in clusters of blocks."""
