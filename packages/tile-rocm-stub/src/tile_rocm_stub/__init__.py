"""AMD GPUs as a target: HIP text for gfx942 and gfx950.

The emulator executes the text and clang compiles it.

The package launches nothing. It is small on purpose: the README walks through it as the example of a backend for a
target with threads, lanes and matrix instructions.
"""

__version__ = "0.1.0"
