"""Certificate signing requests: what they may ask, and who decides once."""

from base64 import b64encode
from typing import Any

import pytest

from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured
from tests.cluster.every_kind_parts import signing_request

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "example.com/serving"
AT = "2023-11-14T22:13:20Z"


REQUEST = signing_request()
NO_PEM = b64encode(b"hi").decode()


def spec(**changed: Any) -> Object:
    asked = {"request": REQUEST, "signerName": SIGNER, "usages": ["server auth"], **changed}
    return {key: value for key, value in asked.items() if value is not None}


def condition(kind: str, status: str = "True", **more: str) -> Object:
    return {"type": kind, "status": status, "reason": "Test", **more}


class Scene:
    def __init__(self) -> None:
        self.secured = Secured()

    async def put(self, part: str, *conditions: Object, **status: Any) -> tuple[int, Any]:
        """Write a status below *part*."""
        _, live = await self.secured.ask("GET", f"{PATH}/jane")
        body = {**live, "status": {"conditions": list(conditions), **status}}
        return await self.secured.ask("PUT", f"{PATH}/jane/{part}", body)

    async def refused(self, part: str, *conditions: Object) -> str:
        code, answer = await self.put(part, *conditions)
        assert code == 422, answer
        return str(answer["message"]).partition(" is invalid: ")[2]


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.secured.create(PATH, {"metadata": {"name": "jane"}, "spec": spec()})
    return scene


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        pytest.param(
            spec(request=NO_PEM),
            f'spec.request: Invalid value: "{NO_PEM}": PEM block type must be CERTIFICATE REQUEST',
            id="no certificate request",
        ),
        pytest.param(spec(usages=[]), "spec.usages: Required value", id="no usages"),
        pytest.param(spec(signerName=None), "spec.signerName: Required value", id="no signer"),
        pytest.param(
            spec(signerName="me"),
            'spec.signerName: Invalid value: "me": must be a fully qualified domain and path of '
            'the form "example.com/signer-name"',
            id="a signer without domain",
        ),
        pytest.param(
            spec(expirationSeconds=60),
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 "
            "seconds (10 minutes)",
            id="too short a life",
        ),
    ],
)
async def test_requests_that_are_refused(scene: Scene, asked: Object, why: str) -> None:
    body = {"metadata": {"name": "x"}, "spec": asked}
    code, answer = await scene.secured.ask("POST", PATH, body)
    assert code == 422, answer
    assert answer["message"].partition(" is invalid: ")[2] == why


async def test_what_was_asked_for_stays(scene: Scene) -> None:
    _, live = await scene.secured.ask("GET", f"{PATH}/jane")
    changed = {**live, "spec": {**live["spec"], "usages": ["client auth"], "username": "root"}}
    code, answer = await scene.secured.ask("PUT", f"{PATH}/jane", changed)
    assert (code, answer["spec"]) == (200, live["spec"])
    assert live["spec"]["username"] == "berth-admin"


async def test_an_approval(scene: Scene) -> None:
    approved = condition("Approved", lastUpdateTime=AT)
    code, answer = await scene.put("approval", approved, certificate="bm8=")
    assert code == 200, answer
    assert answer["status"] == {"conditions": [{**approved, "lastTransitionTime": AT}]}


@pytest.mark.parametrize(
    ("part", "conditions", "why"),
    [
        pytest.param(
            "approval",
            [condition("Approved"), condition("Denied")],
            'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions '
            "are mutually exclusive",
            id="approved and denied",
        ),
        pytest.param(
            "approval",
            [condition("Approved", "False")],
            'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
            id="not approved",
        ),
        pytest.param(
            "approval",
            [condition("Failed")],
            'status.conditions: Forbidden: updates may not add a condition of type "Failed"',
            id="an approver says that signing failed",
        ),
        pytest.param(
            "status",
            [condition("Approved")],
            'status.conditions: Forbidden: updates may not add a condition of type "Approved"',
            id="a signer approves",
        ),
    ],
)
async def test_conditions_that_are_refused(
    scene: Scene, part: str, conditions: list[Object], why: str
) -> None:
    assert await scene.refused(part, *conditions) == why


@pytest.mark.parametrize(
    ("conditions", "done"),
    [
        pytest.param([], "remove", id="taken back"),
        pytest.param([condition("Approved", reason="Other")], "modify", id="changed"),
    ],
)
@pytest.mark.parametrize("part", ["approval", "status"])
async def test_a_decision_stays(
    scene: Scene, part: str, conditions: list[Object], done: str
) -> None:
    assert (await scene.put("approval", condition("Approved")))[0] == 200
    assert await scene.refused(part, *conditions) == (
        f'status.conditions: Forbidden: updates may not {done} a condition of type "Approved"'
    )


async def test_a_signer_fails(scene: Scene) -> None:
    failed = condition("Failed")
    code, answer = await scene.put("status", failed)
    unset = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"))
    assert (code, answer["status"]["conditions"]) == (200, [unset | failed])
