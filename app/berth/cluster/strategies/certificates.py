"""CertificateSigningRequests: what they ask for, and how they are approved or denied.

The rules are those of ``pkg/apis/certificates/validation`` in Kubernetes.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

from cryptography import x509

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
DECISIONS: Final = (APPROVED, DENIED, FAILED)

LEAST_SECONDS: Final = 600
PEM_TYPE: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


def prepare(new: Object, old: Object | None) -> None:
    """Keep what was asked for: who wants something else makes another request."""
    if old is not None:
        new["spec"] = old["spec"]


def certificate_request(value: str | None, path: str) -> list[FieldError]:
    """Evaluate a request for a certificate, in base64 of PEM."""
    request = value or ""
    try:
        content = b64decode(request, validate=True)
        block = PEM_TYPE.search(content)
        if block is None or block[1] != b"CERTIFICATE REQUEST":
            why = "PEM block type must be CERTIFICATE REQUEST"
            return [field_errors.invalid(path, request, why)]
        if not x509.load_pem_x509_csr(content).is_signature_valid:
            return [field_errors.invalid(path, request, "the signature does not verify")]
    except ValueError as exc:
        return [field_errors.invalid(path, request, str(exc).splitlines()[0])]
    return []


def signer_name(name: str | None, path: str) -> list[FieldError]:
    if not name:
        return [field_errors.required(path)]
    domain, slash, rest = name.partition("/")
    if not slash or not rest or "." not in domain or syntax.dns1123_subdomain(domain):
        why = 'must be a fully qualified domain and path of the form "example.com/signer-name"'
        return [field_errors.invalid(path, name, why)]
    return [
        field_errors.invalid(path, name, why)
        for part in rest.split("/")
        for why in syntax.dns1123_subdomain(part)
    ]


def check_status(new: Object, old: Object) -> list[FieldError]:
    """Evaluate the status that a signer writes: it decides nothing, but that it failed."""
    return _check_conditions(new) + _unchanged(new, old, (APPROVED, DENIED), may_add=False)


def check_approval(new: Object, old: Object) -> list[FieldError]:
    """Evaluate the status that an approver writes: its decision stays."""
    found = _check_conditions(new) + _unchanged(new, old, (APPROVED, DENIED), may_add=True)
    return found + _unchanged(new, old, (FAILED,), may_add=False)


def with_transitions(conditions: Sequence[Object]) -> list[Object]:
    """Return conditions that say since when they are as they are."""
    return [
        condition
        if condition.get("lastTransitionTime") or not condition.get("lastUpdateTime")
        else {**condition, "lastTransitionTime": condition["lastUpdateTime"]}
        for condition in conditions
    ]


def _check_conditions(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(_conditions(obj)):
        path, kind = f"status.conditions[{index}]", condition.get("type") or ""
        status = condition.get("status") or ""
        if not kind:
            found.append(field_errors.required(f"{path}.type"))
        elif kind in seen:
            found.append(field_errors.duplicate(f"{path}.type", kind))
        elif {kind, *seen} >= {APPROVED, DENIED} and kind in (APPROVED, DENIED):
            why = "Approved and Denied conditions are mutually exclusive"
            found.append(field_errors.invalid(f"{path}.type", kind, why))
        if not status:
            found.append(field_errors.required(f"{path}.status"))
        elif kind in DECISIONS and status != "True":
            found.append(field_errors.not_supported(f"{path}.status", status, ("True",)))
        seen.add(kind)
    return found


def _unchanged(
    new: Object, old: Object, kinds: Sequence[str], *, may_add: bool
) -> list[FieldError]:
    found = []
    for kind in kinds:
        before, after = ([one for one in _conditions(obj) if one.get("type") == kind]
                         for obj in (old, new))  # fmt: skip
        if len(after) < len(before):
            done = "remove"
        elif len(after) > len(before):
            done = "" if may_add else "add"
        else:
            done = "modify" if before != after else ""
        if done:
            why = f'updates may not {done} a condition of type "{kind}"'
            found.append(field_errors.forbidden("status.conditions", why))
    return found


def _conditions(obj: Object) -> list[Object]:
    return (obj.get("status") or {}).get("conditions") or []
