"""A backend made for a later plugin API."""
