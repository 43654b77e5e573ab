"""Names that this package adds to ``T``."""


def sample_twice(value):
    """``value + value``, for any scalar expression."""
    return value + value
