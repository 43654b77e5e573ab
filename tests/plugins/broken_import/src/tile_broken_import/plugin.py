"""Fails at import, as a backend does whose driver library is missing."""


def load_driver():
    raise OSError("libdriver.so.1: cannot open shared object file")


load_driver()
