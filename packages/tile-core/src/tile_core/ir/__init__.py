"""The intermediate representation: its grammar, visitors, rewriters and verifier."""
