"""Writes the pages of ``docs/reference/`` from the code: ``make reference``.

Each module returns the text of one page. :mod:`docs.generate.pages` lists them, and
``tests/docs/test_generated.py`` fails when a committed page differs from what the code says.
"""
