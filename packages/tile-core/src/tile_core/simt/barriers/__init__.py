"""Step 5, barriers: accesses that threads may make to the same bytes, and where the threads wait for each other."""
