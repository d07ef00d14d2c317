"""ConfigMaps and Secrets: named texts and bytes, which can be frozen."""

import re
from base64 import b64encode

from berth.cluster.resources import Object, Strategy
from berth.cluster.strategies import metadata
from berth.cluster.strategies.metadata import ObjectMeta
from berth.cluster.strategies.shape import Shape, validated
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

SIZE_LIMIT = 1024 * 1024
"""Bytes of all values together."""
KEY_LIMIT = 253
KEY = re.compile("[-._a-zA-Z0-9]+")


class ConfigMap(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    """In base64."""
    immutable: bool | None = None


class Secret(Shape, frozen=True):
    metadata: ObjectMeta | None = None
    data: dict[str, str] | None = None
    """In base64."""
    string_data: dict[str, str] | None = None
    type: str | None = None
    immutable: bool | None = None


def _default_secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    # What is written as plain text is kept as bytes, like the rest.
    texts = obj.pop("stringData", None) or {}
    if texts:
        encoded = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
        obj["data"] = {**obj.get("data", {}), **encoded}


def _validate_config_map(new: ConfigMap, old: ConfigMap | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    data, binary = new.data or {}, new.binary_data or {}
    for path, part in (("data", data), ("binaryData", binary)):
        for key in part:
            errors += [field_errors.invalid(f"{path}[{key}]", key, t) for t in _key(key)]
    errors += [
        field_errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
    if sum(len(text.encode()) for text in data.values()) + _size(binary) > SIZE_LIMIT:
        errors.append(field_errors.too_long("", SIZE_LIMIT))
    if old is not None and old.immutable:
        errors += _frozen(immutable=new.immutable)
        for path, before, after in (
            ("data", old.data, new.data),
            ("binaryData", old.binary_data, new.binary_data),
        ):
            if before != after:
                errors.append(field_errors.forbidden(path, FROZEN))
    return errors


def _validate_secret(new: Secret, old: Secret | None) -> list[FieldError]:
    errors = metadata.validate(new.metadata, old.metadata if old else None)
    data = new.data or {}
    for key in data:
        errors += [field_errors.invalid(f"data[{key}]", key, text) for text in _key(key)]
    if _size(data) > SIZE_LIMIT:
        errors.append(field_errors.too_long("data", SIZE_LIMIT))
    if old is None:
        return errors
    if new.type != old.type:
        errors.append(field_errors.invalid("type", new.type, "field is immutable"))
    if old.immutable:
        errors += _frozen(immutable=new.immutable)
        if new.data != old.data:
            errors.append(field_errors.forbidden("data", FROZEN))
    return errors


FROZEN = "field is immutable when `immutable` is set"


def _frozen(*, immutable: bool | None) -> list[FieldError]:
    return [] if immutable else [field_errors.forbidden("immutable", FROZEN)]


def _key(key: str) -> list[str]:
    if len(key.encode()) > KEY_LIMIT:
        return [f"must be no more than {KEY_LIMIT} bytes"]
    if KEY.fullmatch(key) is None:
        return [
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            f"'{KEY.pattern}')"
        ]
    if key == "." or key.startswith(".."):
        return [f"must not be {key!r}" if key in (".", "..") else "must not start with '..'"]
    return []


def _size(data: dict[str, str]) -> int:
    """Return how many bytes base64 texts stand for."""
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in data.values())


CONFIG_MAP = Strategy(validate=validated(ConfigMap, _validate_config_map))
SECRET = Strategy(default=_default_secret, validate=validated(Secret, _validate_secret))
