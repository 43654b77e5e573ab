"""Selection of lowerings for tile ops: variants, their legality, and dispatch."""
