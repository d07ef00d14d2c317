"""Claims of devices, their templates, and the classes that they name."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from berth.cluster.resources import Object, Strategy
from berth.cluster.schemas import builtin
from berth.cluster.strategies import syntax
from berth.cluster.strategies.by_schema import of_schema
from berth.cluster.strategies.quantities import is_extended
from berth.cluster.strategies.selectors_to_check import require_compiled
from berth.kube import field_errors
from berth.kube.cel.features import Features
from berth.kube.cel.selector_error import CompileError
from berth.kube.field_errors import FieldError
from berth.runtime.release import RELEASE

TYPES: Final = "io.k8s.api.resource.v1."

MAX_SELECTORS: Final = 32
"""Of one request or class (resource.k8s.io/v1)."""
MAX_REQUESTS: Final = 32
MAX_ALTERNATIVES: Final = 8

MAX_EXPRESSIONS: Final = 40 * 1024
"""Bytes of all selectors of one object. A real server has no such limit; it compiles them while
others are answered, which takes about 10 ms for 1 KiB."""


def _check_selectors(owner: Object, path: str, features: Features) -> Iterator[FieldError]:
    selectors = owner.get("selectors") or []
    if len(selectors) > MAX_SELECTORS:
        yield field_errors.too_many(f"{path}.selectors", len(selectors), MAX_SELECTORS)
        return
    for index, selector in enumerate(selectors):
        where = f"{path}.selectors[{index}].cel"
        if not selector.get("cel"):
            yield field_errors.required(where)
        else:
            yield from _check_expression(selector["cel"].get("expression") or "", where, features)


def _check_expression(
    expression: str, where: str, features: Features, *, is_selector: bool = True
) -> Iterator[FieldError]:
    # Takes long to load.
    from berth.kube.cel.selectors import MAX_LENGTH, compile_derived, compile_expression

    where = f"{where}.expression"
    if len(expression.encode(errors="replace")) > MAX_LENGTH:
        yield field_errors.too_long(where, MAX_LENGTH)
        return
    compile_it = compile_expression if is_selector else compile_derived
    compiled = compile_it(expression, features)
    if isinstance(compiled, CompileError):
        yield field_errors.invalid(where, expression, compiled.detail)
    elif compiled.is_too_complex:
        yield field_errors.forbidden(where, "too complex, exceeds cost limit")


def _check_derived(
    request: Object, path: str, features: Features, constrained: Collection[str | None]
) -> Iterator[FieldError]:
    """Evaluate attributes that a request derives, of which some constraint has to be (KEP 6080)."""
    for index, attribute in enumerate(request.get("derivedAttributes") or []):
        where, name = f"{path}.derivedAttributes[{index}]", attribute.get("name")
        if expression := attribute.get("expression"):
            yield from _check_expression(expression, where, features, is_selector=False)
        if name and name not in constrained:
            why = "must be used by a constraint"  # the wording is a guess
            yield field_errors.invalid(f"{where}.name", name, why)


def _expressions(part: Any) -> Iterator[str]:
    """Yield the expressions of all selectors in *part*, wherever they are."""
    if isinstance(part, dict):
        here = part.get("expression")
        if isinstance(here, str):
            yield here
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _expressions(each)


def _check_length(parts: Any, path: str, features: Features) -> list[FieldError]:
    sources = list(_expressions(parts))
    length = sum(len(source.encode(errors="replace")) for source in sources)
    if length <= MAX_EXPRESSIONS:
        require_compiled(sources, features)
        return []
    return [
        field_errors.forbidden(
            path, f"selectors have {length} bytes together, this cluster takes {MAX_EXPRESSIONS}"
        )
    ]


def _check_claim(spec: Object, at: str, features: Features) -> list[FieldError]:
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or []
    path = f"{at}.devices.requests"
    if len(requests) > MAX_REQUESTS:
        return [field_errors.too_many(path, len(requests), MAX_REQUESTS)]
    constrained = {
        constraint.get(field)
        for constraint in devices.get("constraints") or []
        for field in ("matchAttribute", "distinctAttribute")
    }
    too_long = _check_length(requests, path, features)
    return too_long or [
        error
        for index, request in enumerate(requests)
        for error in _check_request(request, f"{path}[{index}]", features, constrained)
    ]


def _check_request(
    request: Object, path: str, features: Features, constrained: Collection[str | None]
) -> Iterator[FieldError]:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly:
        yield from _check_selectors(exactly, f"{path}.exactly", features)
        yield from _check_derived(exactly, f"{path}.exactly", features, constrained)
    if len(alternatives) > MAX_ALTERNATIVES:
        where = f"{path}.firstAvailable"
        yield field_errors.too_many(where, len(alternatives), MAX_ALTERNATIVES)
        return
    for index, alternative in enumerate(alternatives):
        here = f"{path}.firstAvailable[{index}]"
        yield from _check_selectors(alternative, here, features)
        yield from _check_derived(alternative, here, features, constrained)


def resource_claim(gates: Collection[str] = (), release: str = RELEASE) -> Strategy:
    """Return the strategy of a server of *release* with the feature gates *gates* on."""
    features = Features.of(gates)
    return of_schema(
        builtin.schema(TYPES + "ResourceClaim", release),
        namespaced=True,
        check=lambda obj: _check_claim(obj.get("spec") or {}, "spec", features),
        immutable=("spec",),
        created_only=True,
        name=syntax.long_name,
        status=True,
    )


def resource_claim_template(gates: Collection[str] = (), release: str = RELEASE) -> Strategy:
    """Return the strategy of a server of *release* with the feature gates *gates* on."""
    features = Features.of(gates)
    return of_schema(
        builtin.schema(TYPES + "ResourceClaimTemplate", release),
        namespaced=True,
        check=lambda obj: _check_claim(
            (obj.get("spec") or {}).get("spec") or {}, "spec.spec", features
        ),
        immutable=("spec",),
        created_only=True,
        name=syntax.long_name,
    )


def _check_extended_resource(name: str | None) -> list[FieldError]:
    if name is None or (is_extended(name) and not syntax.qualified_name(name)):
        return []
    detail = "must be a valid extended resource name"
    return [field_errors.invalid("spec.extendedResourceName", name, detail)]


def device_class(gates: Collection[str] = (), release: str = RELEASE) -> Strategy:
    """Return the strategy of a server of *release* with the feature gates *gates* on."""
    features = Features.of(gates)

    def check(obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        too_long = _check_length(spec.get("selectors"), "spec.selectors", features)
        errors = too_long or list(_check_selectors(spec, "spec", features))
        return errors + _check_extended_resource(spec.get("extendedResourceName"))

    schema = builtin.schema(TYPES + "DeviceClass", release)
    return of_schema(schema, namespaced=False, check=check, generation=True, name=syntax.long_name)
