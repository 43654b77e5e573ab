"""A backend whose hooks raise."""
