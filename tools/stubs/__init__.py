"""The stubs of ``T``, ``tile_core`` and the backends' names: written from the vocabulary."""
