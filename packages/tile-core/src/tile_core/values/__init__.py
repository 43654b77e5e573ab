"""Values at trace time: scalars, buffers and regions, and the builder that records them."""
