"""A kernel's text executed as plain Python: an oracle independent of compiler and tracing.

``tile_core.reference`` starts from the frontend's program, so its result repeats the frontend's mistakes. This oracle
reads only the text: Python executes it, with other objects bound to ``T`` and to buffers. Only it detects a loop that
was traced with wrong bounds, or a lost rebinding. An import contract of ``pyproject.toml`` separates the two. It
implements the part of the language that the fuzzer's kernels and themes use.

``run(text, arrays)`` gives the outputs of a small kernel. ``numbers`` has the scalars of the language, ``memory`` its
buffers, ``vocabulary`` what ``T`` means there, ``rewrite`` the little that Python cannot express (launches, variables,
threads that meet), and ``threads`` runs the threads of a block.
"""

from tile_core.testing.plain.execute import run

__all__ = ["run"]
