"""Text emitters: a base for languages of the C family, where a target states only the differences."""
