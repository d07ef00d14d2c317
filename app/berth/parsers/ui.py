"""The arguments of ``berth ui``."""

import argparse
from collections.abc import Sequence

from berth.addresses import UI_PORT
from berth.flags import running_scheduler
from berth.terminal import port, program


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=program("ui"), allow_abbrev=False)
    running = parser.add_argument_group("a running scheduler")
    running_scheduler.add_flags(running)
    running.add_argument(
        "--service", type=_service, metavar="NAMESPACE/NAME[:PORT]",
        help="the scheduler behind this Service, through the API server of the kubeconfig, as"
        " kubectl port-forward reaches it. Its certificate is verified only with"
        " --certificate-authority",
    )  # fmt: skip
    parser.add_argument(
        "--ui-port", type=port, default=UI_PORT, metavar="PORT",
        help="port of the page on loopback, another one if it is taken; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--no-browser", action="store_true", help="print the link only, do not open it"
    )
    given = parser.parse_args(argv)
    if given.service and given.server:
        parser.error("--service and --server exclude each other")
    return given


def _service(text: str) -> tuple[str, str, str]:
    """Read a namespace, a name, and the number or name of a port, which may be empty."""
    path, _, port = text.partition(":")
    namespace, slash, name = path.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAMESPACE/NAME or NAMESPACE/NAME:PORT")
    return namespace, name, port
