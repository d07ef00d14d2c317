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
_SYSCTL = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
CONFIG_KEY: Final = re.compile("[-._a-zA-Z0-9]+")
HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"


def _rule(
    pattern: str, *, limit: int, complaint: str, examples: tuple[str, ...], unit: str = "bytes"
) -> Rule:
    """A rule of one pattern, at most *limit* bytes long, which complaints call *unit*."""
    compiled = re.compile(pattern, re.ASCII)
    listed = " or ".join(f"'{example}', " for example in examples)
    wrong = f"{complaint} (e.g. {listed}regex used for validation is '{pattern}')"

    good: set[str] = set()

    def rule(value: str) -> list[str]:
        if value in good:
            return []
        complaints = []
        if len(value.encode()) > limit:
            complaints.append(f"must be no more than {limit} {unit}")
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
    unit="characters",
    complaint="a lowercase RFC 1123 label must consist of lower case alphanumeric characters or "
    "'-', and must start and end with an alphanumeric character",
    examples=("my-name", "123-abc"),
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    "'-' or '.', and must start and end with an alphanumeric character"
)
dns1123_subdomain = _rule(
    _SUBDOMAIN,
    limit=253,
    unit="characters",
    complaint=_SUBDOMAIN_WORDS,
    examples=("example.com",),
)
long_name = _rule(_SUBDOMAIN, limit=253, complaint=_SUBDOMAIN_WORDS, examples=("example.com",))
"""A subdomain, of kinds whose names are validated by declaration."""
wildcard_dns1123_subdomain = _rule(
    rf"\*\.{_SUBDOMAIN}",
    limit=253,
    unit="characters",
    complaint="a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS "
    "subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with "
    "an alphanumeric character",
    examples=("*.example.com",),
)
dns1035_label = _rule(
    _DNS_1035,
    limit=63,
    unit="characters",
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


def config_key(value: str) -> list[str]:
    """Evaluate a key of a ConfigMap or Secret."""
    complaints = []
    if len(value.encode()) > 253:
        complaints.append("must be no more than 253 bytes")
    if CONFIG_KEY.fullmatch(value) is None:
        complaints.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            f"'{CONFIG_KEY.pattern}')"
        )
    if value in (".", ".."):
        complaints.append(f"must not be '{value}'")
    elif value.startswith(".."):
        complaints.append("must not start with '..'")
    return complaints


def no_backsteps(path: str) -> list[str]:
    return ["must not contain '..'"] if ".." in path.split("/") else []


def descending(path: str) -> list[str]:
    """Evaluate the path of a file below a directory."""
    absolute = ["must be a relative path"] if path.startswith("/") else []
    return absolute + no_backsteps(path)


def c_identifier(value: str) -> list[str]:
    pattern = "[A-Za-z_][A-Za-z0-9_]*"
    if re.fullmatch(pattern, value):
        return []
    return [
        "a valid C identifier must start with alphabetic character or '_', followed by a string of "
        "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used "
        f"for validation is '{pattern}')"
    ]


def sysctl(value: str) -> list[str]:
    pattern = rf"({_SYSCTL}[\./])*{_SYSCTL}"
    if len(value) <= 253 and re.fullmatch(pattern, value):
        return []
    return [f"must have at most 253 characters and match regex {pattern}"]


def header_name(value: str) -> list[str]:
    if re.fullmatch("[-A-Za-z0-9]+", value):
        return []
    return [
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
        "regex used for validation is '[-A-Za-z0-9]+')"
    ]


def condition_reason(value: str) -> list[str]:
    """Evaluate the reason of a ``metav1.Condition``."""
    pattern = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
    if re.fullmatch(pattern, value):
        return []
    return [
        "a condition reason must start with alphabetic character, optionally followed by a string "
        "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' "
        "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
        f"'ReasonA:ReasonB', regex used for validation is '{pattern}')"
    ]
