"""The interface between compiled kernels and the runtime: parameters, texts with facts, adapters."""
