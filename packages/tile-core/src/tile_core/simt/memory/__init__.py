"""Step 4, memory: wide accesses, layouts of shared buffers, and their place in the arena."""
