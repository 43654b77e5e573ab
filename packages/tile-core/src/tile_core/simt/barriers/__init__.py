"""Step 5, barriers: conflicting accesses of threads to shared bytes, and where the threads wait for each other."""
