"""Step 6, the launch: loops over the grid become coordinates of the block."""
