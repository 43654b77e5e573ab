"""From a Python function to a tile program.

``source``     finds a function's text and compiles its rewritten form, with the user's file and lines
``rewrite``    Python statements that a kernel may change the meaning of become calls of ``support``
``support``    what rewritten code calls: conditions, comparisons, builtins, stores
``frames``     the names of one running function: assignment, loops, branches, and the rules of rebinding
``loops``      what ``for`` iterates over
``choices``, ``assertions``  what ``x if c else y``, ``assert`` and ``print`` become
``tracer``     annotations become parameters, the function runs, and a ``Program`` comes out
"""
