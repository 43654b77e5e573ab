"""A second backend that is called sample."""
