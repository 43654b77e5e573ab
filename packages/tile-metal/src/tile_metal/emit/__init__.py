"""MSL from per-thread programs."""
