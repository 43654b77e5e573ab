"""A kernel's text, executed as plain Python: a witness that shares nothing with the compiler, not even the tracing.

``tile_core.reference`` begins with what the frontend made of a kernel, so a mistake of the frontend is in its answer
too. This one reads the text alone: Python itself executes it, with other objects in the place of ``T`` and of buffers.
Only here would a loop show that was traced with the wrong bounds, or a rebinding that was lost. A contract of
``pyproject.toml`` keeps the two apart. It knows what the fuzzer's kernels and themes use, not all of the language.

``run(text, arrays)`` gives the outputs of a small kernel. ``numbers`` has the scalars of the language, ``memory`` its
buffers, ``vocabulary`` what ``T`` means there, ``rewrite`` the little that Python cannot express (launches, variables,
threads that meet), and ``threads`` runs the threads of a block.
"""

from tile_core.testing.plain.execute import run

__all__ = ["run"]
