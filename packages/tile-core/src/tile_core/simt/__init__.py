"""Passes of targets with threads: register fragments, loops over threads, barriers, shared memory."""
