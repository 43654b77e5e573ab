"""What Metal kernels cost: counts of emitted texts beside texts written by hand."""
