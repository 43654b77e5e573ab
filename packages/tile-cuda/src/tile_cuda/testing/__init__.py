"""What the fuzzer draws for this package's targets besides the core's programs; it needs ``tile-core[testing]``."""
