"""The embedded cluster, put together: store, API server, controllers, hollow kubelets."""

import asyncio
import ipaddress
import os
import random
import ssl
from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from berth.cluster.access.rbac import Observer
from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import (
    ADMIN,
    CONTROLLER_MANAGER,
    KUBELETS,
    MONITORING,
    SCHEDULER,
    User,
)
from berth.cluster.bootstrap import bootstrap, publish
from berth.cluster.controllers.options import DEFAULTS, ControllerOptions
from berth.cluster.controllers.run import Controllers
from berth.cluster.features import default_features
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.cluster.http.server import ApiServer
from berth.cluster.identity import Identity
from berth.cluster.in_process_api import InProcessApi, Turns
from berth.cluster.kinds.gated import served
from berth.cluster.kinds.registry import Registry
from berth.cluster.kubelet.containers import Containers
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.database import Database
from berth.cluster.storage.journal import Journal
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.steps import standard_admission
from berth.kube.client.api_client import ApiClient
from berth.kube.client.connect import Endpoint, client_of
from berth.kube.kubeconfig import Access, write_kubeconfig
from berth.runtime.addresses import LOOPBACK, THIS_MACHINE
from berth.runtime.certificates import KeyPair, issued, server_context
from berth.runtime.clock import Clock, rfc3339
from berth.runtime.files import write_file
from berth.runtime.release import RELEASE
from berth.runtime.tasks import forever

T = TypeVar("T")

MONITORING_TOKEN: Final = "monitoring/token"
COMPONENTS: Final = {"scheduler/kubeconfig": SCHEDULER, "kubelets/kubeconfig": KUBELETS}
"""What :meth:`EmbeddedCluster.write_credentials` writes: file, and who its user is."""


class EmbeddedCluster:
    """A Kubernetes API, with controllers. It has no nodes of its own."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        host: str = LOOPBACK,
        names: Sequence[str] = (),
        insecure: bool = False,
        tokens: Tokens | None = None,
        observer: Observer | None = None,
        database: Database | None = None,
        limits: InFlightLimits = DEFAULT,
        controller_options: ControllerOptions = DEFAULTS,
        features: Collection[str] | None = None,
        disabled_admission_plugins: Collection[str] = (),
        release: str = RELEASE,
    ) -> None:
        """It listens at the address *host*; *names* are what others call it, addresses or DNS.

        With *insecure* it is plain HTTP, and anyone who can reach it may do everything.

        Else it is HTTPS with a certificate of its own, and requests need a token and the right to
        what they want. *tokens* are those that are good from the start; *observer* gets
        every decision about a request, and *limits* are for requests in progress. *release* of
        Kubernetes is what it serves, *features* are the feature gates that are on, by default those
        of the release, and *disabled_admission_plugins* are of those that
        :data:`.admission.steps.PLUGINS` lists.

        It begins with what *database* has, and everything is kept there: objects, authority, and
        the credentials that are written to files. Without, nothing is kept. Raises DatabaseError.
        """
        self._clock = clock
        self._rng = rng
        self._host = host
        self._controller_options = controller_options
        self.release = release
        """Of Kubernetes, which it serves."""
        self.features = default_features(release) if features is None else features
        """The feature gates that are on."""
        self._tokens = Tokens() if tokens is None else tokens
        self._database = database
        self._identity = Identity(database, self._tokens, clock=clock)
        self.certificate = None if insecure else self._make_certificate(names)
        """What it shows; None when it is plain HTTP."""
        self._registry = Registry(served(self.features, release), release=release)
        self._signing_key = self._identity.signing_key
        self._journal = None if database is None else Journal(database)
        store = Store(journal=self._journal)
        self.is_restored = store.version > 1
        """Whether it was there before this process."""
        self._server = ApiServer(
            self._registry,
            store,
            clock=clock,
            rng=rng,
            tokens=None if insecure else self._tokens,
            admission=partial(standard_admission, disabled=disabled_admission_plugins),
            signing_key=self._signing_key,
            observer=observer,
            limits=limits,
            features=self.features,
        )
        self._turns = Turns()
        self.url = ""
        """Where the API is for this machine, once :meth:`start` has returned."""

    @property
    def how_kept(self) -> str:
        """Say where the cluster is kept, in a line for people."""
        if self._database is None:
            return "the cluster ends with this process; to keep it, use --data-dir"
        return f"the cluster is kept in {self._database.path.parent.absolute()}"

    @property
    def authority(self) -> bytes | None:
        """What the kubeconfig trusts, as PEM; None when it is plain HTTP."""
        return None if self.certificate is None else self._identity.authority.certificate

    async def start(
        self, port: int, *, objects: Sequence[tuple[ResourceType, Object]] = ()
    ) -> None:
        """Create what every cluster has, and *objects*, and listen; OSError when that fails.

        *port* 0 is any free port, and after a restart the one of before, if it is free.
        """
        self._server.is_starting = True
        self._server.open()
        await bootstrap(self._server.writes, objects, served=self._registry)
        port = await self._listen(port)
        now = rfc3339(self._clock.now())
        await publish(self._server.writes, self._reached_at, port, now=now)
        self._server.is_starting = False
        scheme = "http" if self.certificate is None else "https"
        host = f"[{self._reached_at}]" if ":" in self._reached_at else self._reached_at
        self.url = f"{scheme}://{host}:{port}"

    async def connect(
        self, user_agent: str, *, user: User = ADMIN, token: str | None = None
    ) -> ApiClient:
        """Return a client of this cluster, without rate limit.

        It is *user*, with a token made for it, or the user of *token*.
        """
        endpoint = Endpoint(self.url)
        if self.authority is not None:
            bearer = f"Bearer {token or self._tokens.issue(user)}"

            async def authorization() -> str:
                return bearer

            trusted = ssl.create_default_context(cadata=self.authority.decode())
            endpoint = Endpoint(self.url, tls=trusted, authorization=authorization)
        return client_of(endpoint, qps=0, burst=1, user_agent=user_agent, clock=self._clock)

    def add_containers(self, containers: Containers) -> None:
        """Have logs, commands and connections led to the containers of kubelets in this process."""
        self._server.containers.append(containers)

    def in_process(self, user_agent: str, *, user: User) -> InProcessApi:
        """Return the API for a part of this cluster that is *user*, without a connection."""
        token = "" if self.authority is None else f"Bearer {self._tokens.issue(user)}"
        return InProcessApi(
            self._server.app,
            user_agent=user_agent,
            authorization=token,
            turns=self._turns,
            clock=self._clock,
        )

    async def run_controllers(self) -> None:
        """Run the controllers, and watch over the API server; ends only by cancellation."""
        client = self.in_process("kube-controller-manager", user=CONTROLLER_MANAGER)
        controllers = Controllers(
            client,
            self._registry,
            clock=self._clock,
            rng=self._rng,
            certificate=(self.authority or b"").decode(),
            signing_key=self._signing_key,
            options=self._controller_options,
            authority=None if self.certificate is None else self._identity.authority,
            features=self.features,
        )
        async with asyncio.TaskGroup() as tasks:
            for name, run in (("API server", self._server.run), ("controllers", controllers.run)):
                tasks.create_task(forever(name, run), name=name)

    async def while_kept(self, work: Awaitable[T]) -> T:
        """Do *work*, but stop it and raise JournalError when something cannot be kept."""
        working = asyncio.ensure_future(work)
        if self._journal is None:
            return await working
        failing = asyncio.create_task(self._journal.run(), name="journal")
        try:
            await asyncio.wait([working, failing], return_when=asyncio.FIRST_COMPLETED)
            if failing.done():
                await failing
            return await working
        finally:
            for task in (working, failing):
                task.cancel()
            await asyncio.wait([working, failing])

    async def stop(self) -> None:
        """End all watches, let requests finish, and close the connections and the database."""
        await self._server.stop()
        if self._journal is not None:
            await self._journal.close()

    def access(self, user: User = ADMIN, *, scheduler: str = "") -> Access:
        """Return what a kubeconfig of *user* says; it holds a secret.

        *scheduler* is the URL of the scheduler that runs beside it.
        """
        return Access(
            self.url,
            user.name,
            self.authority,
            None if self.authority is None else self._identity.token_of(user),
            scheduler,
            os.getpid(),
        )

    def write_kubeconfig(self, path: Path, *, user: User = ADMIN) -> None:
        """Write a kubeconfig of *user*, for kubectl and everybody else."""
        write_kubeconfig(path, self.access(user))

    def write_credentials(self, folder: Path) -> None:
        """Write what components need into *folder*: a kubeconfig for each of COMPONENTS.

        And a token that is good for reading metrics, MONITORING_TOKEN. Each is in a folder of its
        own, so that it can be given to its reader alone.
        """
        for name in (*COMPONENTS, MONITORING_TOKEN):
            (folder / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, user in COMPONENTS.items():
            self.write_kubeconfig(folder / name, user=user)
        write_file(folder / MONITORING_TOKEN, self._identity.token_of(MONITORING))

    @property
    def _reached_at(self) -> str:
        """The address at which this machine reaches it."""
        is_any = ipaddress.ip_address(self._host).is_unspecified
        return LOOPBACK if is_any else self._host

    def _make_certificate(self, names: Sequence[str]) -> KeyPair:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        hosts = dict.fromkeys((*THIS_MACHINE, self._reached_at, *names))
        return issued(self._identity.authority, list(hosts), now=now, name="berth")

    async def _listen(self, port: int) -> int:
        tls = None
        if self.certificate is not None:
            tls = server_context(self.certificate, client_authority=self.authority)
        if port == 0 and self._identity.port:
            with suppress(OSError):
                return await self._server.start(self._host, self._identity.port, tls=tls)
        listening = await self._server.start(self._host, port, tls=tls)
        self._identity.port = listening
        return listening
