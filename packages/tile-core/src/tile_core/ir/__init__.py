"""The intermediate representation: its grammar, how it is read and rewritten, and the checks of it."""
