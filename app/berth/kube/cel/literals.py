"""Object literals of mutations: ``Object.spec{replicas: 3}`` and ``JSONPatch{op: "add"}``.

In Kubernetes these make values of types that the API server declares for each kind. Here variables
hold plain JSON, so the literals are rewritten to maps: ``{"replicas": 3}``. Types are seen when the
result is merged.
"""

import re
from typing import Final

_TOKENS: Final = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
    | (?P<text>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<literal>\b(?:Object(?:\s*\.\s*[A-Za-z_]\w*)*|JSONPatch)\s*\{)
    | (?P<name>[A-Za-z_]\w*|`[^`\n]*`)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def as_maps(source: str) -> str:
    """Return *source* with object literals as maps; what is no expression stays none."""
    written: list[str] = []
    brackets: list[bool] = []
    """Of each open bracket, whether it is that of an object literal."""
    is_field = False
    """Whether a name that comes now is a field of such a literal."""
    for token in _TOKENS.finditer(source):
        text = token[0]
        match token.lastgroup:
            case "space":
                pass
            case "literal":
                brackets.append(True)
                text, is_field = "{", True
            case "name":
                if is_field:
                    text = f'"{text.strip("`")}"'
                is_field = False
            case _:
                if text in ("{", "(", "["):
                    brackets.append(False)
                elif text in ("}", ")", "]") and brackets:
                    brackets.pop()
                keeps = text == "?" and is_field
                is_field = keeps or (text == "," and bool(brackets) and brackets[-1])
        written.append(text)
    return "".join(written)
