"""Runtime adapters of the CPU backend."""
