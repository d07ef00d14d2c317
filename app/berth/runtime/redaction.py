"""Takes credentials out of what is shown: log lines, configurations, flags, error messages.

Known by how they look (tokens, Authorization headers, users in URLs, private keys) and, in
objects, by the name of the field. Files for berth alone to read again are written whole.
"""

import re
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

REDACTED: Final = "REDACTED"
"""Stands in objects for a secret, as in ``kubectl config view``; it is valid base64, too."""

BLOT: Final = "[redacted]"
"""Stands for a secret in texts for people."""

_SECRETS: Final = re.compile(
    r"""
      (?P<keep>(?i:\bauthorization["']?\s*[:=]\s*["']?))[^"'\r\n,}]+
    | (?P<bearer>(?i:\bbearer\s+))[A-Za-z0-9._~+/=-]{8,}
    | (?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*
    | (?P<field>(?i:\b\w*(?:token|password|keydata)["']?\s*[:=]\s*["']?))[^\s"',}]+
    | (?P<scheme>://)[^/\s"@]+(?=@)
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
"""Each alternative is linear in the text, which may be what a stranger has sent."""

_SECRET_NAME: Final = re.compile(
    r"(?i)(authorization|token|passw(or)?d|secret|credentials?|(api|access|private|secret)[-_]?key"
    r"|key[-_]?data)$"
)


def redacted(text: str, *, word: str = BLOT) -> str:
    """Return *text* with *word* for whatever looks like a credential in it."""

    def blotted(match: re.Match[str]) -> str:
        kept = match[match.lastgroup] if match.lastgroup else ""
        return kept + word

    return _SECRETS.sub(blotted, text)


def without_password(url: str) -> str:
    """Leave out who we say we are, for logs, messages and metrics."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def is_secret(name: str) -> bool:
    """Whether a field of this *name* (``keyData``, ``password``) holds a secret."""
    return _SECRET_NAME.search(name) is not None


def redacted_object(value: Any, *, name: str = "") -> Any:
    """Return a copy of *value*, as JSON has it, with :data:`REDACTED` for secrets.

    These are all texts in fields whose name says so, and parts of other texts that look like
    credentials. *name* is that of the field that holds *value*, if any. An empty text stays.
    """
    match value:
        case str():
            if value and is_secret(name):
                return REDACTED
            return redacted(value, word=REDACTED)
        case dict():
            return {
                key: redacted_object(item, name=name if is_secret(name) else str(key))
                for key, item in value.items()
            }
        case list() | tuple():
            return [redacted_object(item, name=name) for item in value]
        case _:
            return value
