"""Text emitters: a base for languages of the C family, of which a target states only what differs."""
