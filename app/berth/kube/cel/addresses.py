"""IP addresses and CIDRs in CEL, as Kubernetes offers them.

Like quantities they are maps of one entry: ``{"ip": "10.0.0.1"}`` and ``{"cidr": "10.0.0.1/8"}``.
"""

from collections.abc import Callable
from ipaddress import (
    IPv4Address,
    IPv6Address,
    IPv6Interface,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # ships types unmarked

from berth.kube.cel.overloads import function, overload

Value = dict[str, str]
Address = IPv4Address | IPv6Address

_IP: Final = "ip"
_CIDR: Final = "cidr"


def _address(text: str) -> Address:
    """Raises ``ValueError``, also for zones and IPv4 addresses written as IPv6."""
    try:
        parsed = ip_address(text)
    except ValueError:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string") from None
    if isinstance(parsed, IPv6Address) and (parsed.scope_id or parsed.ipv4_mapped):
        raise ValueError(f"IPv4-mapped or zoned IPv6 address {text!r} is not allowed")
    return parsed


def _interface(text: str) -> Any:
    """Raises ``ValueError`` unless *text* is an address, a slash and a number of bits."""
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal():
        raise ValueError(f"network address {text!r} parse error during conversion from string")
    _address(address)
    return ip_interface(text)


def _parses(parse: Callable[[str], Any], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _of(kind: str, value: Value) -> str:
    try:
        return value[kind]
    except KeyError:
        raise ValueError(f"no such overload: not of type {kind}") from None


def _is_global_unicast(address: Address) -> bool:
    broadcast = address == IPv4Address("255.255.255.255")
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (broadcast or special or address.is_link_local)


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in ip_network("224.0.0.0/24")
    return address in ip_network("ff02::/16")


_QUESTIONS: Final[dict[str, Callable[[Address], bool]]] = {
    "isUnspecified": lambda address: address.is_unspecified,
    "isLoopback": lambda address: address.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda address: address.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
}


def _contains_ip(cidr: Value, address: str) -> bool:
    return bool(_address(address) in _interface(_of(_CIDR, cidr)).network)


def _contains_cidr(cidr: Value, other: str) -> bool:
    outer, inner = _interface(_of(_CIDR, cidr)).network, _interface(other).network
    return bool(outer.version == inner.version and inner.subnet_of(outer))


def _family(value: Value) -> int:
    return _address(_of(_IP, value)).version


def _cidr_value(text: str) -> Value:
    interface = _interface(text)
    address = interface.ip.compressed if isinstance(interface, IPv6Interface) else interface.ip
    return {_CIDR: f"{address}/{interface.network.prefixlen}"}


def declarations() -> list[cel.FunctionDecl]:
    """Return the functions, for an environment."""
    text, yes_no, integer, value = cel.Type.STRING, cel.Type.BOOL, cel.Type.INT, cel.Type.MAP

    def method(name: str, result: cel.Type, *parameters: cel.Type) -> Any:
        return overload(name, result, value, *parameters, is_member=True)

    return [
        function(
            "ip",
            overload("string_to_ip", value, text)(lambda given: {_IP: str(_address(given))}),
            method("cidr_ip", value)(lambda one: {_IP: str(_interface(_of(_CIDR, one)).ip)}),
        ),
        function("isIP", overload("is_ip", yes_no, text)(lambda given: _parses(_address, given))),
        function(
            "ip.isCanonical",
            overload("ip_is_canonical", yes_no, text)(lambda given: str(_address(given)) == given),
        ),
        function("family", method("ip_family", integer)(_family)),
        *(
            function(
                name,
                method(f"ip_{name}", yes_no)(lambda one, ask=ask: ask(_address(_of(_IP, one)))),
            )
            for name, ask in _QUESTIONS.items()
        ),
        function("cidr", overload("string_to_cidr", value, text)(_cidr_value)),
        function(
            "isCIDR", overload("is_cidr", yes_no, text)(lambda given: _parses(_interface, given))
        ),
        function(
            "containsIP",
            method("cidr_contains_ip", yes_no, value)(
                lambda one, other: _contains_ip(one, _of(_IP, other))
            ),
            method("cidr_contains_ip_string", yes_no, text)(_contains_ip),
        ),
        function(
            "containsCIDR",
            method("cidr_contains_cidr", yes_no, value)(
                lambda one, other: _contains_cidr(one, _of(_CIDR, other))
            ),
            method("cidr_contains_cidr_string", yes_no, text)(_contains_cidr),
        ),
        function(
            "prefixLength",
            method("cidr_prefix_length", integer)(
                lambda one: _interface(_of(_CIDR, one)).network.prefixlen
            ),
        ),
        function(
            "masked",
            method("cidr_masked", value)(
                lambda one: {_CIDR: str(_interface(_of(_CIDR, one)).network)}
            ),
        ),
    ]
