"""From a Python function to a tile program.

``source``     finds a function's source and compiles its rewritten form, with the user's file and lines
``rewrite``    Python statements whose meaning differs in a kernel become calls of ``support``
``support``    runtime of rewritten code: conditions, comparisons, builtins, stores
``frames``     the names of one running function: assignment, loops, branches, and the rules of rebinding
``loops``      what ``for`` iterates over
``choices``, ``assertions``  what ``x if c else y``, ``assert`` and ``print`` become
``by_name``    decorated functions are pickled by their names
``tracer``     annotations become parameters, the function runs, and a ``Program`` comes out
"""
