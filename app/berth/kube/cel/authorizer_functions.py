"""The functions of ``authorizer``, by Kubernetes' library ``authz``."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel.authorization import ACCOUNT, REQUEST_RESOURCE, decision
from berth.kube.cel.overloads import function, overload

Value = Mapping[str, Any]


@cache
def declarations() -> list[cel.FunctionDecl]:
    """Return the functions, all of them members."""
    text, value = cel.Type.STRING, cel.Type.MAP

    def member(
        name: str, result: cel.Type, call: Callable[..., Any], *parameters: cel.Type
    ) -> cel.FunctionDecl:
        declared = overload(f"authz_{name}", result, value, *parameters, is_member=True)
        return function(name, declared(call))

    return [
        member("serviceAccount", value, _service_account, text, text),
        member("path", value, _begun("path"), text),
        member("group", value, _begun("group"), text),
        member("resource", value, _added("resource", to="group"), text),
        *(
            member(name, value, _added(name, to="resource"), text)
            for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
        ),
        member("check", value, _check, text),
        member("allowed", cel.Type.BOOL, _part("allowed")),
        member("reason", text, _part("reason")),
        member("error", text, _part("error")),
        member("errored", cel.Type.BOOL, lambda value: bool(_part("error")(value))),
    ]


def _service_account(value: Value, namespace: str, name: str) -> Value:
    _needs(value, REQUEST_RESOURCE)
    return {**value, ACCOUNT: f"{namespace}:{name}"}


def _begun(field: str) -> Callable[[Value, str], Value]:
    """Return what makes a check of an authorizer."""

    def begin(value: Value, text: str) -> Value:
        _needs(value, REQUEST_RESOURCE)
        return {ACCOUNT: value[ACCOUNT], field: text}

    return begin


def _added(field: str, *, to: str) -> Callable[[Value, str], Value]:
    def add(value: Value, text: str) -> Value:
        _needs(value, to)
        return {**value, field: text}

    return add


def _check(value: Value, verb: str) -> Value:
    if "path" not in value:
        _needs(value, "resource")
    return decision(value, verb)


def _part(field: str) -> Callable[[Value], Any]:
    def part(value: Value) -> Any:
        _needs(value, "allowed")
        return value[field]

    return part


def _needs(value: Any, field: str) -> None:
    if not isinstance(value, Mapping) or field not in value:
        raise ValueError("no such overload")
