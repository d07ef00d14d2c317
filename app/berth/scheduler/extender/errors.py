"""Errors of extenders."""


class ExtenderError(Exception):
    """An extender gave no answer, one that cannot be used, or said itself that it failed.

    ``may_have_acted`` says whether it may have done what it was asked all the same.
    """

    def __init__(self, message: str, *, may_have_acted: bool = True) -> None:
        super().__init__(message)
        self.may_have_acted = may_have_acted
