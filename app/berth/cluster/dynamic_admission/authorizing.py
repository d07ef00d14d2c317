"""The variable ``authorizer`` of policies and webhooks, for one request."""

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Authorizer
from berth.cluster.access.users import User, service_account
from berth.cluster.resources import Object
from berth.cluster.writes.admission.request import AdmissionRequest
from berth.kube.cel.authorization import ACCOUNT, Answer, Check, Decide, authorizer


def authorizer_of(request: AdmissionRequest) -> Object:
    """Return the variable ``authorizer``."""
    return authorizer(
        {
            "group": request.resource.group,
            "resource": request.resource.plural,
            "subresource": request.subresource,
            "namespace": request.namespace,
            "name": request.name,
        }
    )


def decides(rbac: Authorizer, user: User) -> Decide:
    """Return who answers checks about *user*, and about service accounts."""

    def decide(check: Check, verb: str) -> Answer:
        who = user
        if check[ACCOUNT]:
            namespace, _, name = check[ACCOUNT].partition(":")
            who = service_account(namespace, name)
        wanted = (
            Attributes(verb, path=check["path"])
            if "path" in check
            else Attributes(
                verb,
                check.get("group", ""),
                check.get("resource", ""),
                check.get("subresource", ""),
                check.get("namespace", ""),
                check.get("name", ""),
            )
        )
        found = rbac.authorize(who, wanted)
        return Answer(found.allowed, found.reason)

    return decide
