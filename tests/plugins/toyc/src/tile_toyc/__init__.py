"""A backend for toy C."""
