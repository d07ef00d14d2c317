"""Functions that Kubernetes adds to CEL, in device selectors."""

import pytest

from berth.kube.cel.selector_error import SelectorError
from berth.kube.cel.selectors import DeviceView, Expression
from berth.kube.objects.devices import Device

DEVICE = DeviceView.of("driver.example.com", Device(name="d"))


@pytest.mark.parametrize(
    "expression",
    [
        '"gpu-80gb".find("[0-9]+") == "80"',
        '"gpu".find("[0-9]+") == ""',
        '"a1b2".findAll("[0-9]") == ["1", "2"]',
        '"a1b2".findAll("[0-9]", 1) == ["1"]',
        "[1, 2].isSorted() && ![2, 1].isSorted()",
        "[1, 2].sum() == 3",
        "[1.5, 2.0].max() == 2.0",
        '["b", "a"].min() == "a"',
        '"abc".indexOf("c") == 2',
        'ip("10.0.0.1").family() == 4 && ip("::1").family() == 6',
        'ip("127.0.0.1").isLoopback() && !ip("10.0.0.1").isLoopback()',
        'ip("0.0.0.0").isUnspecified()',
        'ip("224.0.0.1").isLinkLocalMulticast() && ip("ff02::1").isLinkLocalMulticast()',
        'ip("169.254.0.1").isLinkLocalUnicast()',
        'ip("10.0.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast()',
        'isIP("10.0.0.1") && !isIP("10.0.0.256") && !isIP("::ffff:10.0.0.1")',
        'ip.isCanonical("::1") && !ip.isCanonical("0::1")',
        'ip("0::1") == ip("::1")',
        'cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsIP("11.0.0.1")',
        'cidr("10.0.0.0/8").containsIP(ip("10.1.2.3"))',
        'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")',
        '!cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))',
        '!cidr("10.0.0.0/8").containsCIDR("::/0")',
        'cidr("10.1.2.3/8").masked() == cidr("10.0.0.0/8")',
        'cidr("10.1.2.3/8").ip() == ip("10.1.2.3")',
        'cidr("10.1.2.3/8").prefixLength() == 8',
        'isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0") && !isCIDR("10.0.0.0/33")',
    ],
)
def test_what_an_expression_says(expression: str) -> None:
    assert Expression(expression).matches(DEVICE)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("[].max() == 1", "max called on empty list"),
        ('"abc".find("(") == ""', "Illegal regex"),
        ('ip("10.0.0.256").family() == 4', "IP Address '10.0.0.256' parse error"),
        ('cidr("10.0.0.0").prefixLength() == 8', "network address '10.0.0.0' parse error"),
        ('cidr("10.0.0.0/8").isLoopback()', "not of type ip"),
    ],
)
def test_what_goes_wrong(expression: str, says: str) -> None:
    with pytest.raises(SelectorError, match=says):
        Expression(expression).matches(DEVICE)
