"""Step 2, where tiles live: a variant for each op, a layout for each fragment, and the proof that all agree."""
