"""The loader of kernels for the CPU: shared libraries, called through ctypes."""
