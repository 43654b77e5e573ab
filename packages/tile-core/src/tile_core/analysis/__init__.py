"""Questions that passes ask about a program: ranges, proofs about indices, elements that loops touch, uniformity."""
