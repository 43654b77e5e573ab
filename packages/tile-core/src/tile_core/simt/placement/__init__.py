"""Step 2, placement: a variant for each op, a layout for each fragment, and the proof that all agree."""
