"""A backend with a misspelt hook."""
