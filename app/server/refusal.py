"""What an endpoint answers when it does not answer."""

from pydantic import BaseModel


class Refusal(BaseModel):
    """Why there is no answer."""

    detail: str
