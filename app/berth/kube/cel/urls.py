"""URLs in CEL, as Kubernetes offers them.

Like quantities they are maps of one entry: ``{"url": "https://example.com/"}``.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel.overloads import function, overload

Value = dict[str, str]

_URL: Final = "url"


def _parsed(text: str) -> SplitResult:
    """Raises ``ValueError`` unless *text* is absolute, by scheme or by path."""
    parts = urlsplit(text)
    _ = parts.port  # evaluates it
    if not (parts.scheme and (parts.netloc or parts.path)) and not text.startswith("/"):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}"')
    return parts


def _url_value(text: str) -> Value:
    _parsed(text)
    return {_URL: text}


def _is_url(text: str) -> bool:
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def _of(value: Value) -> SplitResult:
    try:
        return _parsed(value[_URL])
    except KeyError:
        raise ValueError("no such overload: not a URL") from None


_PARTS: Final[dict[str, Callable[[SplitResult], str]]] = {
    "getScheme": lambda url: url.scheme,
    "getHost": lambda url: url.netloc.rpartition("@")[2],
    "getHostname": lambda url: url.hostname or "",
    "getPort": lambda url: str(url.port or ""),
    "getEscapedPath": lambda url: url.path,
}


def declarations() -> list[cel.FunctionDecl]:
    """Return the functions, for an environment."""
    text, value = cel.Type.STRING, cel.Type.MAP

    def method(name: str, result: cel.Type) -> Any:
        return overload(name, result, value, is_member=True)

    return [
        function("url", overload("string_to_url", value, text)(_url_value)),
        function("isURL", overload("is_url", cel.Type.BOOL, text)(_is_url)),
        function(
            "getQuery",
            method("url_get_query", value)(
                lambda one: parse_qs(_of(one).query, keep_blank_values=True)
            ),
        ),
        *(
            function(name, method(f"url_{name}", text)(lambda one, part=part: part(_of(one))))
            for name, part in _PARTS.items()
        ),
    ]
