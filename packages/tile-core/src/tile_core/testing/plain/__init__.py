"""A kernel's text, executed as plain Python: a witness that shares nothing with the compiler, not even the tracing.

``run(text, arrays)`` gives the outputs of a small kernel. ``numbers`` has the scalars of the language, ``memory`` its
buffers, ``vocabulary`` what ``T`` means there, ``rewrite`` the little that Python cannot express (launches, variables,
threads that meet), and ``threads`` runs the threads of a block.
"""

from tile_core.testing.plain.execute import run

__all__ = ["run"]
