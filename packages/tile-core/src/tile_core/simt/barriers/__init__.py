"""Insertion of barriers between conflicting accesses of threads to memory that they share."""
