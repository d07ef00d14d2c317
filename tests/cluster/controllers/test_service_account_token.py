"""Tokens in Secrets: what their controller plans."""

from base64 import b64decode

import msgspec
import pytest

from berth.cluster.access.signing_key import SigningKey, new_signing_key
from berth.cluster.actions import Delete, Get, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.service_account_token import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    TYPE,
    SecretView,
    ServiceAccountTokenController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.object_views import Meta, ObjectView
from berth.cluster.resources import Object
from berth.kube.client.errors import NotFoundError

PATH = "/api/v1/namespaces/web/secrets/s"
KEY = "web/s"
ROBOT = ObjectView(Meta("robot", "u-robot", "web"))


class World:
    def __init__(self) -> None:
        self.secrets: Table[SecretView] = Table()
        self.accounts: Table[ObjectView] = Table()
        self.key = SigningKey(new_signing_key())
        self.controller = ServiceAccountTokenController(
            self.secrets, self.accounts, key=self.key, certificate="PEM"
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)


@pytest.fixture
def world() -> World:
    return World()


def secret(data: Object | None = None, *, type_: str = TYPE, account: str = "") -> SecretView:
    named = {ACCOUNT_NAME: "robot", ACCOUNT_UID: account}
    metadata = {"name": "s", "namespace": "web", "uid": "u-s", "annotations": named}
    body = {"metadata": metadata, "type": type_, "data": data or {}}
    return SecretView.decoder()(msgspec.json.encode(body))


def test_a_secret_of_an_account_is_filled(world: World) -> None:
    world.accounts.on_add(ROBOT)
    world.secrets.on_add(secret())
    assert world.enqueued == [KEY]
    [action] = world.controller.plan(KEY).actions
    assert isinstance(action, Patch)
    assert action.path == PATH
    assert action.body["metadata"] == {"uid": "u-s", "annotations": {ACCOUNT_UID: "u-robot"}}
    data = {key: b64decode(value).decode() for key, value in action.body["data"].items()}
    assert world.key.verify(data.pop("token"))["kubernetes.io/serviceaccount/secret.name"] == "s"
    assert data == {"ca.crt": "PEM", "namespace": "web"}
    world.secrets.on_update(secret(), secret(action.body["data"], account="u-robot"))
    assert world.controller.plan(KEY).actions == []


def test_a_secret_without_account_is_deleted_once_the_server_says_so(world: World) -> None:
    world.secrets.on_add(secret())
    [asked] = world.controller.plan(KEY).actions
    assert asked == Get("/api/v1/namespaces/web/serviceaccounts/robot")
    world.controller.finished(KEY, Outcome(asked, error=NotFoundError(404, "NotFound", "no")))
    assert world.controller.plan(KEY).actions == [Delete(PATH, "u-s")]


def test_an_account_that_is_newer_than_we_know(world: World) -> None:
    world.secrets.on_add(secret())
    [asked] = world.controller.plan(KEY).actions
    world.controller.finished(KEY, Outcome(asked, answer=b"{}"))
    world.accounts.on_add(ROBOT)
    assert world.enqueued == [KEY, KEY]
    assert isinstance(world.controller.plan(KEY).actions[0], Patch)


def test_the_secret_of_an_earlier_account_is_deleted(world: World) -> None:
    world.accounts.on_add(ROBOT)
    world.secrets.on_add(secret(account="u-before"))
    assert world.controller.plan(KEY).actions == [Delete(PATH, "u-s")]


def test_secrets_follow_their_account(world: World) -> None:
    world.accounts.on_add(ROBOT)
    world.secrets.on_add(secret())
    world.accounts.on_delete(ROBOT)
    assert world.enqueued == [KEY, KEY]


def test_of_other_secrets_only_the_metadata_are_kept(world: World) -> None:
    other = secret({"a": "x" * 1000}, type_="Opaque")
    assert other.data == {}
    world.secrets.on_add(other)
    assert world.enqueued == []
