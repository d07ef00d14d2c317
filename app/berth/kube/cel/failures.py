"""Failures of expressions; without the library, so that they can always be imported."""


class CompileError(Exception):
    """An expression that is wrong, or gives something else than it must; in CEL's words."""


class EvaluationError(Exception):
    """An expression that failed on what it was evaluated with; in CEL's words."""
