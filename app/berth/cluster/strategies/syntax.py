"""The syntax of names, labels and keys, with the API server's words for what is wrong.

Each rule returns the list of complaints, empty when the string is fine.
"""

import re
from collections.abc import Callable
from ipaddress import ip_network
from typing import Final

Rule = Callable[[str], list[str]]

MOST_GOOD: Final = 1_000
"""Texts that each rule remembers to be good: most are said again and again."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"


def _rule(pattern: str, *, limit: int, complaint: str, examples: tuple[str, ...]) -> Rule:
    """A rule of one pattern, at most *limit* bytes long."""
    compiled = re.compile(pattern, re.ASCII)
    listed = " or ".join(f"'{example}', " for example in examples)
    wrong = f"{complaint} (e.g. {listed}regex used for validation is '{pattern}')"

    good: set[str] = set()

    def rule(value: str) -> list[str]:
        if value in good:
            return []
        complaints = []
        if len(value.encode()) > limit:
            complaints.append(f"must be no more than {limit} bytes")
        if compiled.fullmatch(value) is None:
            complaints.append(wrong)
        if not complaints:  # so it is short
            if len(good) >= MOST_GOOD:
                good.clear()
            good.add(value)
        return complaints

    return rule


_dns1123_label = _rule(
    _LABEL,
    limit=63,
    complaint="a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
    "'-', and must start and end with an alphanumeric character",
    examples=("my-name", "123-abc"),
)
dns1123_subdomain = _rule(
    _SUBDOMAIN,
    limit=253,
    complaint="a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character",
    examples=("example.com",),
)
wildcard_dns1123_subdomain = _rule(
    rf"\*\.{_SUBDOMAIN}",
    limit=253,
    complaint="a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
    "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with "
    "an alphanumeric character",
    examples=("*.example.com",),
)
dns1035_label = _rule(
    _DNS_1035,
    limit=63,
    complaint="a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
    "with an alphabetic character, and end with an alphanumeric character",
    examples=("my-name", "abc-123"),
)
label_value = _rule(
    _LABEL_VALUE,
    limit=63,
    complaint="a valid label must be an empty string or consist of alphanumeric characters, '-', "
    "'_' or '.', and must start and end with an alphanumeric character",
    examples=("MyValue", "my_value", "12345"),
)
_name_part = _rule(
    _NAME_PART,
    limit=63,
    complaint="must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character",
    examples=("MyName", "my.name", "123-abc"),
)


def dns1123_label(value: str) -> list[str]:
    """Evaluate a label, of which a subdomain has several."""
    complaints = _dns1123_label(value)
    if complaints and len(value) <= 63 and not dns1123_subdomain(value):
        return ["must not contain dots"]
    return complaints


def qualified_name(value: str) -> list[str]:
    """Evaluate a label or annotation key, a taint key, an extended resource: ``[prefix/]name``."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
            f"'123-abc', regex used for validation is '{_NAME_PART}') with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    complaints = []
    if slash and not prefix:
        complaints.append("prefix part must be non-empty")
    elif slash:
        complaints += [f"prefix part {text}" for text in dns1123_subdomain(prefix)]
    if not name:
        complaints.append("name part must be non-empty")
    return complaints + [f"name part {text}" for text in _name_part(name)]


def cidr(value: str) -> list[str]:
    """Evaluate a range of addresses; zeros before a number of IPv4 are taken, as of old."""
    address, slash, bits = value.partition("/")
    plain = ".".join(part.lstrip("0") or "0" for part in address.split("."))
    try:
        if slash and bits.isdecimal():
            ip_network(f"{address if ':' in address else plain}/{bits}", strict=False)
            return []
    except ValueError:
        pass
    return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]


def path_segment(value: str) -> list[str]:
    """Evaluate a name that only has to fit into a URL: ``system:node``."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{each}'" for each in ("/", "%") if each in value]


def port_name(value: str) -> list[str]:
    """Evaluate a container port's name (an IANA service name)."""
    complaints = []
    if len(value) > 15:
        complaints.append("must be no more than 15 characters")
    if re.fullmatch("[-a-z0-9]*", value) is None:
        complaints.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", value) is None:
        complaints.append("must contain at least one letter (a-z)")
    if "--" in value:
        complaints.append("must not contain consecutive hyphens")
    if value[:1] == "-" or value[-1:] == "-":
        complaints.append("must not begin or end with a hyphen")
    return complaints


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]
