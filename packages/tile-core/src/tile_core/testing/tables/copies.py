def units():
    return []
