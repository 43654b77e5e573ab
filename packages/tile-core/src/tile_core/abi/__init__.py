"""The interface between a compiled kernel and the runtime that launches it: parameters, texts with facts, adapters."""
