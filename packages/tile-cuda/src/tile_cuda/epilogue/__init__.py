"""Epilogues: results from accumulators to global memory, and prefetched epilogue operands."""
