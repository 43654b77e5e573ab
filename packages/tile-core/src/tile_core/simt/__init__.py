"""What targets with threads share: fragments in registers, loops over threads, barriers, shared memory."""
