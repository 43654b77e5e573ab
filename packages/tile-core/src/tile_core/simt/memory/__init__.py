"""Step 4, memory: wide accesses, layouts of shared buffers, and the bytes that they share."""
