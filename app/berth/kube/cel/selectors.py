"""CEL selectors on devices: what ``device`` is in an expression, and what an expression answers.

Imported when the first selector is met: the library takes 0.15 s to load, and few clusters have
devices.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from typing import Any, Final

import yaml
from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel import functions, includes
from berth.kube.cel.ast import decode
from berth.kube.cel.cost import estimated_cost
from berth.kube.cel.failures import errors_of
from berth.kube.cel.features import DEFAULT, Features
from berth.kube.cel.programs import Program
from berth.kube.cel.selector_error import COST_EXCEEDED, CompileError, SelectorError
from berth.kube.cel.work import DEVICE_WEIGHT, worst_work
from berth.kube.objects.devices import Device, DeviceAttribute

MAX_COST: Final = 1_000_000
"""How much a selector may cost, by estimate and when it runs (resource.k8s.io/v1)."""
MAX_LENGTH: Final = 10 * 1024
"""How many bytes a selector may have (resource.k8s.io/v1)."""

MOST_KEPT: Final = 1024
"""Expressions that need not be compiled again."""
MOST_DERIVED: Final = 256
"""The same, of those of derived attributes."""

_LEAST_WORK: Final = 20_000
"""What asking a device once counts at least, so that it is not asked more than 50 times."""

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
    """A compiled selector, or what else is asked of a device."""

    __slots__ = ("cost", "features", "program", "source", "work")

    def __init__(
        self, source: str, features: Features = DEFAULT, *, is_selector: bool = True
    ) -> None:
        """Raises CompileError when *source* is wrong or, as a selector, gives no yes or no."""
        self.source = source
        self.features = features
        try:
            size = len(source.encode())
        except UnicodeEncodeError as exc:
            raise CompileError(f"compilation failed: {exc}") from exc
        if size > MAX_LENGTH:
            raise CompileError(f"Too long: may not be more than {MAX_LENGTH} bytes")
        try:
            program = environment(features).compile(source)
        except RuntimeError as exc:
            raise CompileError(f"compilation failed: {errors_of(str(exc), source)}") from exc
        gives = program.return_type()
        if is_selector and gives not in (cel.Type.BOOL, cel.Type.DYN):
            raise CompileError(
                f"must evaluate to bool or the unknown type, not {gives.name().lower()}"
            )
        self.program = Program(partial(environment, features), program)
        checked = decode(program.serialize())
        self.cost = estimated_cost(checked)
        """In the worst case, in units of CEL; the API server refuses more than MAX_COST."""
        self.work = worst_work(
            checked, _python_functions(features), has_lists=features.list_type_attributes
        )
        """In the worst case, in units of :mod:`berth.kube.cel.work`."""

    @classmethod
    def of_packed(
        cls, source: str, features: Features, packed: bytes, *, size: int, cost: int, work: int
    ) -> "Expression":
        """Return one that was compiled elsewhere: what it says of itself and its program."""
        self = cls.__new__(cls)
        self.source, self.features, self.cost, self.work = source, features, cost, work
        self.program = Program.of_packed(partial(environment, features), packed, size)
        return self

    @property
    def is_too_complex(self) -> bool:
        """Whether the API server refuses it."""
        return self.cost > MAX_COST

    def matches(self, device: "DeviceView") -> bool:
        """Say whether *device* will do; SelectorError when the expression fails on it."""
        return _yes_or_no(self._evaluate(device))

    def attribute(self, device: "DeviceView") -> DeviceAttribute:
        """Return what the expression gives for *device*; SelectorError if that is no attribute."""
        return _attribute(self._evaluate(device))

    def _evaluate(self, device: "DeviceView") -> cel.Value:
        """Return what it gives; SelectorError when it fails.

        An expression that may cost more than MAX_COST is not run. kube-scheduler runs it and stops
        when it has cost that much; the API server lets none through that could.
        """
        turns = MAX_COST // max(self.work, _LEAST_WORK)
        while turns and not device.is_oversized:
            turns -= 1
            answer = self._ask(device)
            if _kind(answer) != "error":
                return answer
            missing = _MISSING_KEY.fullmatch(answer.value())
            if missing is None:
                raise _failed(_worded(answer.value()))
            key = missing["double"] if missing["single"] is None else missing["single"]
            widened = device.with_empty_domain(key)
            if widened is None:
                raise _failed(f"no such key: {key}")
            device = widened
        raise _failed(COST_EXCEEDED)

    def _ask(self, device: "DeviceView") -> cel.Value:
        try:
            return self.program.load().eval(device.activation)
        except RuntimeError as exc:
            # The library stops after 10,000 turns of loops, by its own count.
            text = _first_line(str(exc))
            raise _failed(COST_EXCEEDED if "budget" in text else _worded(text)) from exc


class DeviceView:
    """A device as the variable ``device``; made once for all expressions that look at it.

    In Kubernetes a domain that a device has nothing of is an empty map, although ``in`` does not
    find it. The library has no such maps, so an expression that fails for want of a domain is asked
    again with it. Names of attributes are identifiers, and those of domains, but for single words,
    are not: that tells which of the two was wanting.
    """

    __slots__ = ("_features", "_variable", "activation", "is_oversized")

    def __init__(self, variable: Mapping[str, Any], features: Features = DEFAULT) -> None:
        self._variable = variable
        self._features = features
        self.is_oversized = _weight(variable) > _MOST_WEIGHT
        """Whether it is far larger than the API allows, so that no bound holds for it."""
        self.activation = environment(features).Activation({"device": dict(variable)})

    @classmethod
    def of(cls, driver: str, device: Device, features: Features = DEFAULT) -> "DeviceView":
        """Return the view for expressions with the same *features*.

        Raises SelectorError when an attribute cannot be understood.
        """
        attributes = {}
        for name, value in device.attributes.items():
            try:
                attributes[name] = _plain(value, features)
            except ValueError as exc:
                raise _failed(f"attribute {name}: {exc}") from exc
        capacity = {
            name: functions.quantity_value(value.value) for name, value in device.capacity.items()
        }
        shared: dict[str, Any] = (
            {"allowMultipleAllocations": device.allow_multiple_allocations}
            if features.consumable_capacity
            else {}
        )
        return cls(
            {
                "driver": driver,
                **shared,
                "attributes": _by_domain(attributes, driver),
                "capacity": _by_domain(capacity, driver),
            },
            features,
        )

    def with_empty_domain(self, key: str) -> "DeviceView | None":
        """Return the view with *key* as a domain; None if it is none, or known already."""
        lacking = [name for name in ("attributes", "capacity") if key not in self._variable[name]]
        if key.isidentifier() or not lacking:
            return None
        empty: dict[str, Any] = {name: {**self._variable[name], key: {}} for name in lacking}
        return DeviceView({**self._variable, **empty}, self._features)


def compile_expression(source: str, features: Features = DEFAULT) -> Expression | CompileError:
    """Compile *source*, or say why it cannot be; either is kept."""
    kept = _kept.get((source, features))
    if kept is not None:
        _kept.move_to_end((source, features))
        return kept
    try:
        kept = Expression(source, features)
    except CompileError as exc:
        kept = exc
    keep(source, features, kept)
    return kept


@lru_cache(MOST_DERIVED)
def compile_derived(source: str, features: Features = DEFAULT) -> Expression | CompileError:
    """Compile what a derived attribute is to be, or say why that cannot be."""
    try:
        return Expression(source, features, is_selector=False)
    except CompileError as exc:
        return exc


def keep(source: str, features: Features, compiled: Expression | CompileError) -> None:
    """Have :func:`compile_expression` return *compiled* for *source*, as long as there is room."""
    _kept[source, features] = compiled
    _kept.move_to_end((source, features))
    if len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)


def is_known(source: str, features: Features) -> bool:
    """Tell whether *source* need not be compiled."""
    return (source, features) in _kept


_kept: OrderedDict[tuple[str, Features], Expression | CompileError] = OrderedDict()


@cache
def environment(features: Features) -> cel.Env:
    own = functions.declarations()
    if features.list_type_attributes:
        own.append(includes.declaration())
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_EXTENSIONS),
        variables={"device": cel.Type.Map(cel.Type.STRING, cel.Type.DYN)},
        functions=own,
    )


@cache
def _python_functions(features: Features) -> frozenset[str]:
    """Return the names of the functions that are not the library's own."""
    declared = yaml.safe_load(environment(features).config().to_yaml())["functions"]
    return frozenset(function["name"] for function in declared)


def _plain(attribute: DeviceAttribute, features: Features) -> Any:
    many = attribute.typed_list if features.list_type_attributes else None
    if many is not None:
        type_, values = many
        return [_plain_value(type_, value) for value in values]
    typed = attribute.typed
    if typed is None:
        raise ValueError("unsupported attribute value")
    return _plain_value(*typed)


def _plain_value(type_: str, value: str | int | bool) -> Any:
    return functions.semver_value(str(value)) if type_ == "version" else value


_MOST_WEIGHT: Final = 16 * DEVICE_WEIGHT


def _weight(value: Any) -> int:
    """Return the characters and elements in *value*, in depth."""
    if isinstance(value, Mapping):
        return 1 + sum(_weight(key) + _weight(item) for key, item in value.items())
    if isinstance(value, list):
        return 1 + sum(map(_weight, value))
    return len(value) if isinstance(value, str) else 1


def _by_domain(values: Mapping[str, Any], driver: str) -> dict[str, dict[str, Any]]:
    """Group by the domain in front of the name; what has none is of the driver's."""
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.rpartition("/")
        grouped.setdefault(domain if slash else driver, {})[identifier] = value
    return grouped


_OPTIONAL: Final = "optional_type"


def _kind(answer: cel.Value) -> str:
    """Return the type of an answer; ``error`` is a failure, which has a text.

    The library says so of optional values as well, and has no value for them.
    """
    if answer.type() == cel.Type.ERROR:
        try:
            answer.value()
        except TypeError:
            return _OPTIONAL
    return str(answer.type().name()).lower()


def _yes_or_no(answer: cel.Value) -> bool:
    if answer.type() == cel.Type.BOOL:
        return bool(answer.value())
    name = _kind(answer)
    raise _failed(
        f"CEL result of type {name} could not be converted to bool:"
        f" unsupported native conversion from {name} to 'bool'"
    )


def _attribute(answer: cel.Value) -> DeviceAttribute:
    kind = _kind(answer).partition("<")[0]
    value = None if kind == _OPTIONAL else answer.plain_value()
    match kind, value:
        case "string", str():
            return DeviceAttribute(string=value)
        case "bool", bool():
            return DeviceAttribute(bool_=value)
        case "int", int():
            return DeviceAttribute(int_=value)
        case "map", _ if (version := functions.version_of(value)) is not None:
            return DeviceAttribute(version=version)
        case "list", [*values]:
            versions = [functions.version_of(each) for each in values]
            if all(isinstance(each, str) for each in values):
                return DeviceAttribute(strings=tuple(values))
            if all(isinstance(each, bool) for each in values):
                return DeviceAttribute(bools=tuple(values))
            if all(isinstance(each, int) and not isinstance(each, bool) for each in values):
                return DeviceAttribute(ints=tuple(values))
            if all(versions):
                return DeviceAttribute(versions=tuple(filter(None, versions)))
    raise _failed(
        f"CEL result of type {kind} could not be converted to a string, an int, a bool, a semver or"
        " a list of one of them"
    )


def _failed(text: str) -> SelectorError:
    return SelectorError(f"CEL runtime error: {text}")


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
