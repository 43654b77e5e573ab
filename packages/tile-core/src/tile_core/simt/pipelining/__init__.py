"""Software pipelining on tile ops: copies of later iterations overlap the computation."""
