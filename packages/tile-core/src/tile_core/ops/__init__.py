"""The tile ops, one file each: signature, checks and meaning."""
