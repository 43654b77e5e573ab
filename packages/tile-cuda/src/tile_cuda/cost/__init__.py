"""Cost models: estimates of kernels, and warnings about tiles far from the best."""
