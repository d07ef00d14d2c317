"""Descriptions of schemas come from the docstrings of fields."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from berth.runtime.field_docstrings import DescribedFields


class _Base(DescribedFields, BaseModel, alias_generator=to_camel):
    in_base: int
    """Of the base."""
    replaced: int
    """Not this."""


@dataclass
class _Part(DescribedFields):
    name: str
    """Of a dataclass."""
    silent: int = 0


class _Model(_Base):
    replaced: int
    """Of the model,
    in two lines."""
    explicit: int = Field(description="Given")
    """Not this."""
    part: _Part
    """A reference."""


def _descriptions(schema: dict[str, Any]) -> dict[str, str | None]:
    return {name: each.get("description") for name, each in schema["properties"].items()}


def test_every_property_is_described_by_the_docstring_of_its_field() -> None:
    schema = TypeAdapter(_Model).json_schema()
    assert _descriptions(schema) == {
        "inBase": "Of the base.",
        "replaced": "Of the model,\nin two lines.",
        "explicit": "Given",
        "part": "A reference.",
    }
    assert _descriptions(schema["$defs"]["_Part"]) == {"name": "Of a dataclass.", "silent": None}
