"""Running compiled kernels: signatures, arguments, adapters, the ``Kernel`` that users call."""
