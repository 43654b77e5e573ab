"""Programs that the fuzzer draws for this package's targets; requires ``tile-core[testing]``."""
