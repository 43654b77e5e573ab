"""Copies: TMA, `cp.async`, multicast, and layouts of rows that products read."""
