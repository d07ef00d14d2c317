"""NAME DATA AGE, NAME TYPE DATA AGE, NAME SECRETS AGE; NAME POD-SELECTOR AGE"""

from berth.cluster.columns.cells import AGE, NAME, NONE, dig, listed, selector_text
from berth.cluster.resources import Column

CONFIG_MAP_COLUMNS = (
    NAME,
    Column(
        "Data",
        "string",
        lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ()),
        "How many entries it has.",
    ),
    AGE,
)

SECRET_COLUMNS = (
    NAME,
    Column("Type", "string", lambda obj: obj.get("type") or "", "What the bytes are for."),
    Column("Data", "string", lambda obj: len(obj.get("data") or ()), "How many entries it has."),
    AGE,
)

SERVICE_ACCOUNT_COLUMNS = (
    NAME,
    Column(
        "Secrets",
        "string",
        lambda obj: len(listed(obj, "secrets")),
        "How many secrets its pods may use.",
    ),
    AGE,
)

NETWORK_POLICY_COLUMNS = (
    NAME,
    Column(
        "Pod-Selector",
        "string",
        lambda obj: selector_text(dig(obj, "spec.podSelector")) or NONE,
        "Which pods it is about.",
    ),
    AGE,
)
