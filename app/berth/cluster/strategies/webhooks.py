"""Webhook configurations: what is filled in, and what a webhook must say.

Source: ``pkg/apis/admissionregistration/validation`` of kube-apiserver.
"""

import base64
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from berth.cluster.resources import Object
from berth.cluster.strategies import selectors, syntax
from berth.cluster.strategies.expressions import check_conditions
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

VERSIONS: Final = ("v1", "v1beta1")
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT", "*")
SCOPES: Final = ("*", "Cluster", "Namespaced")
URL_FORM: Final = "desired format: https://host[/path]"
SECONDS: Final = range(1, 31)
PORTS: Final = range(1, 65536)


def check(obj: Object) -> list[FieldError]:
    """Evaluate the webhooks of a configuration."""
    names: set[str] = set()
    found: list[FieldError] = []
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        found += _check_webhook(hook, path)
        name = hook.get("name") or ""
        if name in names:
            found.append(field_errors.duplicate(f"{path}.name", name))
        names.add(name)
    return found


def check_rules(rules: list[Object], path: str) -> Iterator[FieldError]:
    """Evaluate the rules of a webhook or a policy; *path* is that of the list."""
    for index, rule in enumerate(rules):
        here = f"{path}[{index}]"
        for key in ("operations", "apiGroups", "apiVersions"):
            values = rule.get(key) or []
            if not values:
                yield field_errors.required(f"{here}.{key}")
            if len(values) > 1 and "*" in values:
                detail = f"if '*' is present, must not specify other {_words(key)}"
                yield field_errors.invalid(f"{here}.{key}", values, detail)
        for number, operation in enumerate(rule.get("operations") or ()):
            if operation not in OPERATIONS:
                yield field_errors.not_supported(
                    f"{here}.operations[{number}]", operation, OPERATIONS
                )
        for number, version in enumerate(rule.get("apiVersions") or ()):
            if not version:
                yield field_errors.required(f"{here}.apiVersions[{number}]")
        yield from _check_resources(rule.get("resources") or [], f"{here}.resources")
        scope = rule.get("scope")
        if scope is not None and scope not in SCOPES:
            yield field_errors.not_supported(f"{here}.scope", scope, SCOPES)


def _check_resources(resources: list[str], path: str) -> Iterator[FieldError]:
    """Evaluate resources: ``pods``, ``pods/exec``, ``pods/*``, ``*/scale``, ``*``, ``*/*``."""
    if not resources:
        yield field_errors.required(path)
    all_parts, all_resources = set[str](), set[str]()
    whole = 0
    for index, said in enumerate(resources):
        at = f"{path}[{index}]"
        if not said:
            yield field_errors.required(at)
        resource, slash, part = said.partition("/")
        if not slash:
            whole += 1
            continue
        if resource in all_parts:
            detail = f"if '{resource}/*' is present, must not specify {said}"
            yield field_errors.invalid(at, said, detail)
        if part in all_resources:
            detail = f"if '*/{part}' is present, must not specify {said}"
            yield field_errors.invalid(at, said, detail)
        if part == "*":
            all_parts.add(resource)
        if resource == "*":
            all_resources.add(part)
    if "*/*" in resources and len(resources) > 1:
        detail = "if '*/*' is present, must not specify other resources"
        yield field_errors.invalid(path, resources, detail)
    if "*" in resources and whole > 1:
        detail = "if '*' is present, must not specify other resources without subresources"
        yield field_errors.invalid(path, resources, detail)


def _words(key: str) -> str:
    return {"apiGroups": "API groups", "apiVersions": "API versions"}.get(key, key)


def _check_webhook(hook: Object, path: str) -> Iterator[FieldError]:
    yield from _check_name(hook.get("name") or "", f"{path}.name")
    yield from check_rules(hook.get("rules") or [], f"{path}.rules")
    side_effects = hook.get("sideEffects")
    if side_effects is None:
        detail = f"must specify one of {', '.join(SIDE_EFFECTS)}"
        yield field_errors.required(f"{path}.sideEffects", detail)
    elif side_effects not in SIDE_EFFECTS:
        yield field_errors.not_supported(f"{path}.sideEffects", side_effects, SIDE_EFFECTS)
    if (seconds := hook.get("timeoutSeconds")) is not None and seconds not in SECONDS:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield field_errors.invalid(f"{path}.timeoutSeconds", seconds, detail)
    for key in ("namespaceSelector", "objectSelector"):
        selector = hook.get(key)
        yield from selectors.validate(selector, f"{path}.{key}")
    yield from _check_client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    conditions = hook.get("matchConditions") or ()
    yield from check_conditions(conditions, f"{path}.matchConditions")
    yield from _check_versions(hook.get("admissionReviewVersions") or [], path)


def _check_name(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield field_errors.required(path)
        return
    for text in syntax.dns1123_subdomain(name):
        yield field_errors.invalid(path, name, text)
        return
    if name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        yield field_errors.invalid(path, name, detail)


def _check_versions(versions: list[str], path: str) -> Iterator[FieldError]:
    here = f"{path}.admissionReviewVersions"
    if not versions:
        yield field_errors.required(here, f"must specify one of {', '.join(VERSIONS)}")
        return
    for index, version in enumerate(versions):
        for text in syntax.dns1035_label(version):
            yield field_errors.invalid(f"{here}[{index}]", version, text)
        if version in versions[:index]:
            yield field_errors.invalid(f"{here}[{index}]", version, "duplicate version")
    if not set(versions) & set(VERSIONS):
        detail = f"must include at least one of {', '.join(VERSIONS)}"
        yield field_errors.invalid(here, versions, detail)


def _check_client(config: Object, path: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield field_errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(url, f"{path}.url")
    elif service is not None:
        yield from _check_service(service, f"{path}.service")
    if bundle := config.get("caBundle"):
        try:
            authority = base64.b64decode(bundle, validate=True).decode("ascii")
            ssl.create_default_context(cadata=authority)
        except (ValueError, ssl.SSLError) as exc:
            yield field_errors.invalid(
                f"{path}.caBundle", bundle, f"unable to load root certificates: {exc}"
            )


def _check_url(url: str, path: str) -> Iterator[FieldError]:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as exc:
        yield field_errors.required(path, f"url must be a valid URL: {exc}; {URL_FORM}")
        return
    if parts.scheme != "https":
        detail = f"'https' is the only allowed URL scheme; {URL_FORM}"
        yield field_errors.invalid(path, parts.scheme, detail)
    if not host:
        yield field_errors.invalid(path, "", f"host must be specified; {URL_FORM}")
    if parts.username is not None:
        detail = "user information is not permitted in the URL"
        yield field_errors.invalid(path, parts.username, detail)
    if parts.fragment:
        yield field_errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        detail = "query parameters are not permitted in the URL"
        yield field_errors.invalid(path, parts.query, detail)


def _check_service(service: Object, path: str) -> Iterator[FieldError]:
    if not service.get("name"):
        yield field_errors.required(f"{path}.name", "service name is required")
    if not service.get("namespace"):
        yield field_errors.required(f"{path}.namespace", "service namespace is required")
    if (port := service.get("port")) is not None and port not in PORTS:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield field_errors.invalid(f"{path}.port", port, detail)
    where = service.get("path")
    if where and not where.startswith("/"):
        yield field_errors.invalid(f"{path}.path", where, "must start with a '/'")
    if where and "//" in where:
        yield field_errors.invalid(f"{path}.path", where, "segment[0] may not be empty")
