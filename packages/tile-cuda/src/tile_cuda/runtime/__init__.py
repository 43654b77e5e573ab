"""Loading and launching of kernels: driver calls, runtime adapter, and the path of one call."""
