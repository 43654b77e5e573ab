"""The conformance kit and the fuzzer: what every backend runs to know that it computes what the language says.

``pytest --pyargs tile_core.testing --tile-backend cpu --tile-runtime host``
    runs every case of ``tables`` on a target and prints what was right, refused, skipped and wrong, per op.

``python -m tile_core.testing.fuzz --count 2000 --target cpu``
    makes random programs and compares target, CPU and NumPy.

Both need the extra ``tile-core[testing]``. This package imports nothing before it is used.
"""
