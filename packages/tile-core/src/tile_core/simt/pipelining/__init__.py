"""Software pipelining on tile ops: copies of later iterations are in flight while an iteration computes."""
