"""CEL expressions on objects of the API: rules of custom resources, admission policies.

Imported when the first expression is met: the library takes 0.15 s to load. Variables hold plain
JSON, so an expression is not checked against the fields of a kind; a field that is not there fails
when the expression is evaluated, unless ``has()`` or ``?`` guards it.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel import authorizer_functions, functions, urls
from berth.kube.cel.failures import CompileError, EvaluationError, errors_of
from berth.kube.cel.overloads import function, overload

MAX_LENGTH: Final = 64 * 1024
"""Bytes of an expression. The API server has no limit but that of a request."""

_EXTENSIONS: Final = """
name: kubernetes
extensions:
- name: bindings
- name: encoders
- name: lists
- name: math
- name: optional
- name: sets
- name: strings
- name: two-var-comprehensions
"""
_MISSING_KEY: Final = "Key not found in map : "


class Environment:
    """What expressions may name; make one for each set of variables and keep it."""

    def __init__(
        self,
        *variables: str,
        types: Mapping[str, str] | None = None,
        authorizes: bool = False,
    ) -> None:
        """*variables* are of any type; those in *types* are of the type that is said there, as CEL
        writes it: ``int``, ``list<string>``, ``map<string, dyn>``. With *authorizes* there are the
        functions of ``authorizer``."""
        typed = {name: cel.Type(type_) for name, type_ in (types or {}).items()}
        self._env = cel.NewEnv(
            config=cel.NewEnvConfigFromYaml(_EXTENSIONS),
            variables={**dict.fromkeys(variables, cel.Type.DYN), **typed},
            functions=_functions() + (authorizer_functions.declarations() if authorizes else []),
        )

    def compile(self, source: str, *returns: str) -> "Expression":
        """Compile *source*; raise CompileError.

        *returns* are the types that it may give: ``bool``, ``string``, ``list`` ...; one that is
        known only when it is evaluated passes here. None: any.
        """
        if len(source.encode(errors="replace")) > MAX_LENGTH:
            raise CompileError(f"may not be more than {MAX_LENGTH} bytes")
        try:
            program = self._env.compile(source)
        except (RuntimeError, ValueError) as exc:
            raise CompileError(errors_of(str(exc), source)) from exc
        gives = _name(program.return_type())
        if returns and gives not in (*returns, "dyn"):
            raise CompileError(f"must evaluate to {' or '.join(returns)}")
        return Expression(source, program)

    def bind(self, values: Mapping[str, Any]) -> cel.Activation:
        """Return *values*, plain JSON, as expressions see them; good for many evaluations."""
        return self._env.Activation(dict(values))


class Expression:
    """A compiled expression."""

    __slots__ = ("_program", "source")

    def __init__(self, source: str, program: cel.Expression) -> None:
        self.source = source
        self._program = program

    def evaluate(self, values: cel.Activation) -> Any:
        """Return what it gives, as plain JSON; raise EvaluationError.

        The library stops after 10,000 turns of loops.
        """
        try:
            answer = self._program.eval(values)
        except RuntimeError as exc:
            raise EvaluationError(_first_line(str(exc))) from exc
        if answer.type() == cel.Type.ERROR:
            raise EvaluationError(_worded(answer.value()))
        return answer.plain_value()

    def serialize(self) -> bytes:
        """Return the checked expression, for :func:`berth.kube.cel.ast.decode`."""
        return bytes(self._program.serialize())

    def is_true(self, values: cel.Activation) -> bool:
        """Return the bool that it gives; raise EvaluationError, also for anything else."""
        answer = self.evaluate(values)
        if not isinstance(answer, bool):
            raise EvaluationError("must evaluate to bool")
        return answer


@cache
def _functions() -> list[cel.FunctionDecl]:
    return [*functions.declarations(), *urls.declarations(), *_json_patch()]


def _json_patch() -> list[cel.FunctionDecl]:
    """Return the function for paths of JSON patches (RFC 6901)."""
    text = cel.Type.STRING
    escape = overload("jsonpatch_escape_key", text, text)
    escaped = escape(lambda key: key.replace("~", "~0").replace("/", "~1"))
    return [function("jsonpatch.escapeKey", escaped)]


def _name(type_: cel.Type) -> str:
    return str(type_.name()).lower().partition("<")[0]


def _worded(failure: str) -> str:
    code, _, text = failure.partition(": ")
    if text.startswith("No matching overloads found"):
        return "no such overload"
    if text.startswith(_MISSING_KEY):
        return f"no such key: {text.removeprefix(_MISSING_KEY).strip(chr(34))}"
    return text or code


def _first_line(text: str) -> str:
    return errors_of(text, text).partition("\n")[0]
