"""What names stand for while a kernel is traced: scalars, buffers and regions, and the builder that records them."""
