"""Step 3, from tiles to threads: loops over a thread's own elements, fragments as arrays of registers."""
