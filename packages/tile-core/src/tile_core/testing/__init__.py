"""Conformance suite and fuzzer, which check that a backend implements the language.

``pytest --pyargs tile_core.testing --tile-backend cpu --tile-runtime host``
    runs every case of ``tables`` on a target and prints the numbers of right, refused, skipped and wrong parts per op.

``python -m tile_core.testing.fuzz --count 2000 --target cpu``
    makes random programs and compares target, CPU and NumPy.

Both need the extra ``tile-core[testing]``. This package imports nothing before it is used.
"""
