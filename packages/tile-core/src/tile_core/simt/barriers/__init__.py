"""Insertion of barriers between conflicting accesses of threads to shared or global memory."""
