"""Step 4, memory: vector accesses, layouts of shared buffers, and the shared-memory arena."""
