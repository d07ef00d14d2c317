"""Flags that several commands share: a module per subject, which adds flags to a parser and makes
what they ask for.

What takes long to import, such as numpy, pydantic, or what speaks HTTP, is imported in functions:
help and wrong usage are told at once.
"""
