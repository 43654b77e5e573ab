# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""Names that backends add to ``T``, where they are installed."""

from tile_cuda._names import *
from tile_metal._names import *
