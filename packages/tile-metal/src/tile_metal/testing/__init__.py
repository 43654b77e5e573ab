"""Check a Mac: assumptions of the backend, and 40 kernels beside MLX's; see `tile_metal.selftest`."""
