"""A backend whose import fails."""
