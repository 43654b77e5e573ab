"""A backend of a few lines: its own target, variant and name of T on the core's CPU path."""
