"""CEL selectors on devices: what ``device`` is in an expression, and what an expression answers.

Imported when the first selector is met: the library takes 0.15 s to load, and few clusters have
devices.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from app.cel import functions
from app.cel.selector_error import SelectorError
from app.objects.devices import Device, DeviceAttribute

MAX_COST: Final = 1_000_000
"""How much a selector may cost, by estimate and when it runs (resource.k8s.io/v1)."""
MAX_LENGTH: Final = 10 * 1024
"""How many bytes a selector may have (resource.k8s.io/v1)."""

_EXTENSIONS: Final = """
name: device-selectors
extensions:
- name: bindings
- name: lists
- name: optional
- name: sets
- name: strings
  version: 2
- name: two-var-comprehensions
"""


class Expression:
    """A compiled selector."""

    __slots__ = ("_program", "source")

    def __init__(self, source: str) -> None:
        """Raises SelectorError when *source* is wrong or cannot give a yes or no."""
        self.source = source
        try:
            self._program = environment().compile(source)
        except RuntimeError as exc:
            raise SelectorError(f"CEL compile error: {_first_line(str(exc))}") from exc
        gives = self._program.return_type()
        if gives not in (cel.Type.BOOL, cel.Type.DYN):
            raise SelectorError(
                f"CEL compile error: must evaluate to bool or the unknown type, not {gives}"
            )

    def matches(self, device: "DeviceView") -> bool:
        """Say whether *device* will do; SelectorError when the expression fails on it."""
        while True:
            answer = self._program.eval(device.activation)
            if answer.type() != cel.Type.ERROR:
                return _yes_or_no(answer)
            missing = _MISSING_KEY.fullmatch(answer.value())
            if missing is None:
                raise SelectorError(f"CEL runtime error: {_worded(answer.value())}")
            key = missing["double"] if missing["single"] is None else missing["single"]
            widened = device.with_empty_domain(key)
            if widened is None:
                raise SelectorError(f"CEL runtime error: no such key: {key}")
            device = widened


class DeviceView:
    """A device as the variable ``device``; made once for all expressions that look at it.

    In Kubernetes a domain that a device has nothing of is an empty map, although ``in`` does not
    find it. The library has no such maps, so an expression that fails for want of a domain is asked
    again with it. Names of attributes are identifiers, and those of domains, but for single words,
    are not: that tells which of the two was wanting.
    """

    __slots__ = ("_variable", "activation")

    def __init__(self, variable: Mapping[str, Any]) -> None:
        self._variable = variable
        self.activation = environment().Activation({"device": dict(variable)})

    @classmethod
    def of(cls, driver: str, device: Device) -> "DeviceView":
        """Raises SelectorError when an attribute cannot be understood."""
        try:
            attributes = {name: _plain(value) for name, value in device.attributes.items()}
        except ValueError as exc:
            raise SelectorError(f"CEL runtime error: {exc}") from exc
        capacity = {
            name: functions.quantity_value(value.value)
            for name, value in device.capacity.items()
        }
        return cls(
            {
                "driver": driver,
                "allowMultipleAllocations": device.allow_multiple_allocations,
                "attributes": _by_domain(attributes, driver),
                "capacity": _by_domain(capacity, driver),
            }
        )

    def with_empty_domain(self, key: str) -> "DeviceView | None":
        """Return the view with *key* as a domain; None if it is none, or known already."""
        lacking = [name for name in ("attributes", "capacity") if key not in self._variable[name]]
        if key.isidentifier() or not lacking:
            return None
        empty: dict[str, Any] = {name: {**self._variable[name], key: {}} for name in lacking}
        return DeviceView({**self._variable, **empty})


@lru_cache(maxsize=1024)
def compile_expression(source: str) -> Expression | SelectorError:
    """Compile *source*, or say why it cannot be; either is kept."""
    try:
        return Expression(source)
    except SelectorError as exc:
        return exc


@cache
def environment() -> cel.Env:
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_EXTENSIONS),
        variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
        functions=functions.declarations(),
    )


def _plain(attribute: DeviceAttribute) -> Any:
    typed = attribute.typed
    if typed is None:
        raise ValueError("unsupported attribute value")
    type_, value = typed
    return functions.semver_value(str(value)) if type_ == "version" else value


def _by_domain(values: Mapping[str, Any], driver: str) -> dict[str, dict[str, Any]]:
    """Group by the domain in front of the name; what has none is of the driver's."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.rpartition("/")
        grouped.setdefault(domain if slash else driver, {})[identifier] = value
    return grouped


def _yes_or_no(answer: cel.Value) -> bool:
    if answer.type() == cel.Type.BOOL:
        return bool(answer.value())
    name = answer.type().name().lower()
    raise SelectorError(
        f"CEL runtime error: CEL result of type {name} could not be converted to bool:"
        f" unsupported native conversion from {name} to 'bool'"
    )


# How the library words failures, and how Kubernetes does.

_MISSING_KEY: Final = re.compile(
    r"NOT_FOUND: Key not found in map : (?:\"(?P<double>.*)\"|'(?P<single>.*)')"
)


def _worded(failure: str) -> str:
    code, _, text = failure.partition(": ")
    if text.startswith("No matching overloads found"):
        return "no such overload"
    return text or code


def _first_line(text: str) -> str:
    return text.partition("\n")[0].removeprefix("INVALID_ARGUMENT: ")
