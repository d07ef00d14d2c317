"""Fields of kinds whose schemas are not in the published description, as their ``.proto`` says."""

from berth.cluster.schemas import builtin
from berth.cluster.schemas.types import Field, ListOf, Scalar, Schema, Type


def field_of(number: int, of: Type, *, is_required: bool = False, keys: str = "") -> Field:
    """Return the field of that *number*; a list has *keys* if it is a map by them."""
    return Field(
        of,
        is_required=is_required,
        by_value=of == Scalar("string") and not is_required,
        number=(number,),
        list_type=("map" if keys else "atomic") if isinstance(of, ListOf) else "",
        list_keys=(keys,) if keys else (),
        patch_strategy="merge" if keys else "",
        merge_key=keys,
    )


def text(number: int, *, is_required: bool = False) -> Field:
    return field_of(number, Scalar("string"), is_required=is_required)


def kind_of(type_name: str, /, **fields: Field) -> Schema:
    """Return the schema of a kind, with what every kind has."""
    common = {
        "apiVersion": Field(Scalar("string")),
        "kind": Field(Scalar("string")),
        "metadata": field_of(1, builtin.meta("ObjectMeta")),
    }
    return Schema(type_name, lambda: common | fields)
