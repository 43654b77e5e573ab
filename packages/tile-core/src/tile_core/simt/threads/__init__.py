"""Step 3, from tiles to threads: loops over elements, and fragments as register arrays."""
