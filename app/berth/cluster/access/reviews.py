"""Questions about users and rights, asked by POST and answered at once: nothing is stored."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from berth.cluster import errors, views
from berth.cluster.access.attributes import Attributes
from berth.cluster.access.authentication import TokenAuthenticator
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.service_account_tokens import INVALID_TOKEN, InvalidTokenError
from berth.cluster.access.users import User
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.schemas.go_value import go_value
from berth.kube import field_errors
from berth.kube.field_errors import FieldError
from berth.runtime.clock import Clock, rfc3339

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"

SELF_ACCESS_REVIEWS: Final = find(AUTHORIZATION, "v1", "selfsubjectaccessreviews")
LOCAL_ACCESS_REVIEWS: Final = find(AUTHORIZATION, "v1", "localsubjectaccessreviews")
ACCESS_REVIEWS: Final = find(AUTHORIZATION, "v1", "subjectaccessreviews")

NON_RESOURCE_ATTRIBUTES: Final = builtin.schema("io.k8s.api.authorization.v1.NonResourceAttributes")

Answer = Callable[[Object, User, str], Object]
"""Returns the status of a review, given its spec, who asks, and in which namespace. The spec has
only fields that it should have, of the right JSON types."""


class Reviews:
    """Answers."""

    def __init__(
        self, authenticator: TokenAuthenticator, authorizer: Authorizer, *, clock: Clock
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._answers: Mapping[str, Answer] = {
            "SelfSubjectReview": self._who,
            "TokenReview": self._whose,
            "LocalSubjectAccessReview": self._may_in_namespace,
            "SelfSubjectAccessReview": self._may_i,
            "SelfSubjectRulesReview": self._what_may_i,
            "SubjectAccessReview": self._may,
        }

    def answer(self, resource: ResourceType, review: Object, user: User, namespace: str) -> Object:
        """Return *review*, which *user* sent to *namespace*, with its status.

        Of the questions about the user alone, the server answers with an object of its own.
        """
        spec: Object = review.get("spec") or {}
        status = self._answers[resource.kind](spec, user, namespace)
        match resource.kind:
            case "SelfSubjectReview":
                kept: Object = {"metadata": {"creationTimestamp": rfc3339(self._clock.now())}}
            case "SelfSubjectRulesReview":
                kept = {"metadata": {}, "spec": {}}
            case _:
                kept = review
        return {**views.type_of(resource), **kept, "status": status}

    def _who(self, _spec: Object, user: User, _namespace: str) -> Object:
        return {"userInfo": user.info()}

    def _whose(self, spec: Object, _user: User, _namespace: str) -> Object:
        text = spec.get("token")
        if not text:
            raise errors.bad_request("token is required for TokenReview in authentication")
        try:
            found = self._authenticator.authenticate(text, spec.get("audiences") or ())
        except InvalidTokenError as exc:
            why = str(exc)
            said = why if why == INVALID_TOKEN else f"[{INVALID_TOKEN}, {why}]"
            return {"error": said, "user": {}}
        return {
            "authenticated": True,
            "user": found.user.info(),
            "audiences": list(found.audiences),
        }

    def _may_i(self, spec: Object, user: User, _namespace: str) -> Object:
        found = _check_attributes(spec)
        if found:
            raise errors.invalid_question(SELF_ACCESS_REVIEWS.group, found)
        return self._access(user, spec)

    def _may(self, spec: Object, _user: User, _namespace: str) -> Object:
        return self._access(_subject(spec, ACCESS_REVIEWS), spec)

    def _may_in_namespace(self, spec: Object, _user: User, namespace: str) -> Object:
        subject = _subject(spec, LOCAL_ACCESS_REVIEWS)
        attributes = spec.get("resourceAttributes")
        if attributes is None:
            why = "disallowed on this kind of request"
            found = [field_errors.invalid("spec.nonResourceAttributes", _paths(spec), why)]
        elif attributes.get("namespace", "") != namespace:
            where = attributes.get("namespace", "")
            why = f"must match metadata.namespace: {namespace}"
            found = [field_errors.invalid("spec.resourceAttributes.namespace", where, why)]
        else:
            return self._access(subject, spec)
        raise errors.invalid_question(LOCAL_ACCESS_REVIEWS.group, found)

    def _what_may_i(self, spec: Object, user: User, _namespace: str) -> Object:
        namespace = spec.get("namespace")
        if not namespace:
            raise errors.bad_request("no namespace on request")
        rules = [rule.as_object() for rule in self._authorizer.rules_of(user, namespace)]
        return {
            "resourceRules": [rule for rule in rules if "resources" in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }

    def _access(self, user: User, spec: Object) -> Object:
        decision = self._authorizer.decide(user, _attributes(spec))
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status


def _subject(spec: Object, resource: ResourceType) -> User:
    """Return whom a SubjectAccessReview is about; 422 when it is about nobody, or nothing."""
    found = _check_attributes(spec)
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not name and not groups:
        why = "at least one of user or group must be specified"
        found.append(field_errors.invalid("spec.user", name, why))
    if found:
        raise errors.invalid_question(resource.group, found)
    return User(name, tuple(groups), spec.get("uid") or "")


def _check_attributes(spec: Object) -> list[FieldError]:
    paths = spec.get("nonResourceAttributes")
    if "resourceAttributes" not in spec and paths is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_errors.invalid("spec.resourceAttributes", None, why)]
    if "resourceAttributes" in spec and paths is not None:
        why = "cannot be specified in combination with resourceAttributes"
        shown = go_value(NON_RESOURCE_ATTRIBUTES, paths)
        return [field_errors.invalid("spec.nonResourceAttributes", shown, why)]
    return []


def _attributes(spec: Object) -> Attributes:
    about = spec.get("resourceAttributes")
    if about is None:
        return Attributes(**_paths(spec))
    fields = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{field: about.get(field) or "" for field in fields})


def _paths(spec: Object) -> dict[str, Any]:
    about = spec.get("nonResourceAttributes") or {}
    return {"verb": about.get("verb") or "", "path": about.get("path") or ""}
