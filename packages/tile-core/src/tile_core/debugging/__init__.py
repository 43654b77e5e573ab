"""Looking into an execution of a kernel's reference: ``tile.watch``, ``tile.find_nan`` and ``tile debug``."""
