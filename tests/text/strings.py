def decoded(strings):
    """Return the strings of a tensor as those of Python."""
    return [text.decode() for text in strings.numpy()]
