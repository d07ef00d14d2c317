"""What expressions may cost: the numbers of Kubernetes' own tests, and what follows from its rules.

The first table is that of ``dynamic-resource-allocation/cel/compile_test.go`` (1.36).
"""

import pytest

from berth.kube.cel.ast import decode
from berth.kube.cel.cost import estimated_cost
from berth.kube.cel.features import DEFAULT, Features
from berth.kube.cel.selectors import environment

A = 'device.attributes["dra.example.com"]'
C = 'device.capacity["dra.example.com"]'


def cost(expression: str, features: Features = DEFAULT) -> int:
    return estimated_cost(decode(environment(features).compile(expression).serialize()))


TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
EXPENSIVE = (
    "".join(f"{TEN}.all({name}, " for name in ("x", "y", "z", "z2", "z3", "z4", "z5"))
    + "int('1'.find('[0-9]*')) < 100"
    + ")" * 7
)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("true", 0),
        ('device.attributes["no-such-domain"].noSuchAttr.isGreaterThan(quantity("0"))', 6),
        ('device.attributes["no-such-domain"]["noSuchAttr"].isGreaterThan(quantity("0"))', 6),
        ('"no-such-domain" in device.attributes', 3),
        ('device.driver == ""', 2),
        ('device.driver == "dra.example.com"', 4),
        (f"{A}.name", 4),
        (f'{A}["name"]', 4),
        (f"cel.bind(dra, {A}, dra.name)", 15),
        (f"{A}.name > 0", 5),
        (f'{A}.name == "fish"', 5),
        (f"{A}.name.exists(x, x > 0)", 5 + (3 + 3) * 64),
        (f"{A}.name.exists(x, x == true)", 5 + (3 + 3) * 64),
        (f'{A}.name.exists(x, x == "fish")', 5 + (3 + 3) * 64),
        (f"{A}.names.size() == 2", 6),
        (f'{A}.names.all(x, x != "")', 5 + (2 + 2) * 64),
        (f'{A}.names.all(x, x.isGreaterThan(semver("0.0.1")))', 5 + (2 + 4) * 64),
        (f"1 in {A}.names", 4 + 64),
        (f'{A}.name.isGreaterThan(semver("0.0.1"))', 6),
        (f'{A}.name.isGreaterThan(semver("v0.0.1", true)) && isSemver("v1.0.0", true)', 7),
        (f'{A}.name.exists(x, x.isGreaterThan(semver("0.0.1")))', 5 + (3 + 4) * 64),
        (f'{C}.name.isGreaterThan(quantity("1Ki"))', 6),
        (f'"name" in {C} && {C}.name.isGreaterThan(quantity("1Ki"))', 10),
        (f'!("name" in {C}) || {C}.name.isGreaterThan(quantity("1Ki"))', 11),
        (
            f'{C}.quantity.isGreaterThan(quantity("1Ki")) && {A}.bool && {A}.int > 0 &&'
            f' {A}.string == "fish" && {A}.version.isGreaterThan(semver("0.0.1")) &&'
            f' {C}["quantity"].isGreaterThan(quantity("1Ki")) && {A}["bool"] && {A}["int"] > 0 &&'
            f' {A}["string"] == "fish" && {A}["version"].isGreaterThan(semver("0.0.1"))',
            52,
        ),
        (f"{A}.a && {A}.b && {A}.c", 12),
        ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
        (f'{A}.exists_one(x, x == "services")', 133),
        (f'{A}.services.split("example").size() >= 2', 19),
        (f'{A}.services.matches("[^a]?sym")', 18),
        ('device.capacity.exists_one(x, x == "dra.example.com")', 164),
        (f'{C}.exists_one(x, x == "memory")', 133),
        (EXPENSIVE, 85_555_551),
        ("device.allowMultipleAllocations == true", 3),
        ("device.allowMultipleAllocations == false", 3),
    ],
)
def test_the_numbers_of_kubernetes(expression: str, want: int) -> None:
    assert cost(expression) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        (f"{A}.name.includes(1)", 4 + 48),
        (f'{A}.name.includes(semver("1.0.0"))', 4 + 48 + 1),
        (f"1 in {A}.names", 4 + 64),
        (f"{A}.names[0] == 1", 6),
    ],
)
def test_the_numbers_of_kubernetes_for_lists(expression: str, want: int) -> None:
    assert cost(expression, Features(list_type_attributes=True)) == want
