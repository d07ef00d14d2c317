"""``berth bench``: what things cost, as microseconds per operation, with the machine named.

What lives here: made-up clusters and the loops that measure. What must not: assertions; a number
that is too large is for people to evaluate.
"""
