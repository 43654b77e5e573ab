"""Step 2, placement: variants of ops, layouts of fragments, and the proof of agreement."""
