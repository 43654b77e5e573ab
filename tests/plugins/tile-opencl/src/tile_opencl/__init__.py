"""A backend for OpenCL C."""
