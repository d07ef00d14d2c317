"""Flags of commands that ask a running scheduler: how to find it, and to prove who asks."""

import argparse
from typing import TYPE_CHECKING, Final

from berth.cli import importing
from berth.runtime.addresses import KUBECONFIG, UP_PORT
from berth.runtime.terminal import http_url

if TYPE_CHECKING:
    from berth.service.running_scheduler import ConfigFlags
    from berth.service.scheduler_client import RunningScheduler

CREDENTIALS: Final = (
    f"credentials and certificate authority to use; default: $KUBECONFIG, otherwise ./{KUBECONFIG}"
    " if it exists, otherwise ~/.kube/config if it is of berth up"
)


def add_scheduler_flags(
    where: argparse._ArgumentGroup, *, kubeconfig: str = CREDENTIALS, server: str | None = None
) -> None:
    """Add how to reach a scheduler; *kubeconfig* is what that flag does.

    *server* is its URL by default, in place of that of ``berth up``.
    """
    usual = (
        f"the one that berth up wrote to the kubeconfig, otherwise port {UP_PORT} on this machine"
    )
    where.add_argument(
        "--server",
        type=http_url,
        metavar="URL",
        default=server,
        help=f"URL of the scheduler; default: {server or usual}",
    )
    where.add_argument("--kubeconfig", metavar="FILE", help=kubeconfig)
    where.add_argument(
        "--context", metavar="NAME",
        help="context of the kubeconfig to use; default: the current one",
    )  # fmt: skip
    where.add_argument(
        "--certificate-authority", metavar="FILE", help="also trust certificates of this authority"
    )
    where.add_argument(
        "--insecure-skip-tls-verify",
        action="store_true",
        help="do not verify the server's certificate",
    )


def add_service_flag(where: argparse._ArgumentGroup) -> None:
    """Add how to reach the scheduler behind a Service; see :func:`check`."""
    where.add_argument(
        "--service", type=_service, metavar="NAMESPACE/NAME[:PORT]",
        help="the scheduler behind this Service, through the API server of the kubeconfig, as"
        " kubectl port-forward reaches it. Its certificate is verified only with"
        " --certificate-authority",
    )  # fmt: skip


def check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """End with an error if *given* names two schedulers."""
    if given.service and given.server:
        parser.error("--service and --server exclude each other")


def config_flags(given: argparse.Namespace) -> "ConfigFlags":
    """Return how the scheduler is reached and trusted."""
    from berth.service.running_scheduler import ConfigFlags

    return ConfigFlags(**{name: getattr(given, name) for name in ConfigFlags.__struct_fields__})


def scheduler(given: argparse.Namespace) -> "RunningScheduler":
    """Return the scheduler that the flags mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    with importing():
        from berth.service.running_scheduler import running_scheduler

    return running_scheduler(given.server, config_flags(given))


def _service(text: str) -> tuple[str, str, str]:
    """Read a namespace, a name, and the number or name of a port, which may be empty."""
    path, _, port = text.partition(":")
    namespace, slash, name = path.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    return namespace, name, port
