"""The base of text emitters for languages of the C family."""
