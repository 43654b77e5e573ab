"""Analyses of a program: value ranges, proofs about indices, elements accessed by loops, uniformity."""
