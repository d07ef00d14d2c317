"""What is wrong with a device selector."""


class SelectorError(Exception):
    """An expression cannot be compiled, or failed on a device; the text is for people."""
