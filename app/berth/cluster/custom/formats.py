"""The ``format`` of strings (``kube-openapi/pkg/validation/strfmt``). Unknown ones mean nothing."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

import re2

from berth.cluster.strategies import syntax

_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> Any:
    """Compile a pattern when it is needed for the first time."""
    return re2.compile(f"(?i){pattern}")


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return check


def _date(text: str) -> date:
    if len(text) != len("2006-01-02"):
        raise ValueError(text)
    return date.fromisoformat(text)


_is_date_time_text = _matches(r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d(\.\d+)?(z|[+-]\d\d:?\d\d)")


def _date_time(text: str) -> datetime:
    if not _is_date_time_text(text):
        raise ValueError(text)
    seconds, dot, rest = text.upper().partition(".")
    digits = re.match(r"\d*", rest)
    fraction = digits[0] if digits else ""
    whole = f"{seconds}.{fraction[:6]:0<6}{rest[len(fraction) :]}" if dot else seconds
    return datetime.fromisoformat(whole)


def _uri(text: str) -> None:
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(text)


def _isbn10(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if re.fullmatch(r"\d{9}[\dX]", digits) is None:
        return False
    total = sum((10 if d == "X" else int(d)) * (10 - i) for i, d in enumerate(digits))
    return total % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if re.fullmatch(r"\d{13}", digits) is None:
        return False
    return sum(int(d) * (3 if i % 2 else 1) for i, d in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    if not 13 <= len(digits) <= 19:
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches("[0-9a-f]{24}"),
    "byte": _reads(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _reads(lambda text: ipaddress.ip_interface(text) if "/" in text else _uri("")),
    "creditcard": _credit_card,
    "date": _reads(_date),
    "date-time": _reads(_date_time),
    "datetime": _reads(_date_time),
    "duration": _matches(
        r"0|[+-]?(\d+(\.\d*)?|\.\d+) ?(ns|us|µs|μs|ms|s|m|h|d|w|[a-z]+)"
        r"( ?(\d+(\.\d*)?|\.\d+) ?(ns|us|µs|μs|ms|s|m|h|d|w|[a-z]+))*"
    ),
    "email": _matches(r"(\"[^\"]+\"|[^@\s<>()\[\],;:\"]+)@[a-z0-9.-]+"),
    "hexcolor": _matches("#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "hostname": lambda text: (
        len(text) <= 255 and _matches(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?)+")(text)
    ),
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8s-long-name": lambda text: not syntax.dns1123_subdomain(text),
    "k8s-short-name": lambda text: not syntax.dns1123_label(text),
    "mac": _matches(
        "[0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,14}|([0-9a-f]{4}\\.){2,9}[0-9a-f]{4}"
    ),
    "password": lambda _text: True,
    "rgbcolor": _matches(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _reads(_uri),
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
}
