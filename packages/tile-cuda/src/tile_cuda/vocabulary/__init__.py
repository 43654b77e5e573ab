"""Names that this package adds to ``T``."""
