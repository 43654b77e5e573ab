"""CUDA C++ from per-thread programs."""
