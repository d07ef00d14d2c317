"""The running scheduler that flags mean."""

import argparse
from typing import Any

from berth.kube.client.connect import Endpoint
from berth.kube.client.service_pods import ServicePort
from berth.service import running_scheduler
from berth.service.scheduler_client import RunningScheduler


def scheduler(given: argparse.Namespace) -> RunningScheduler:
    """Return the scheduler that the flags mean; nothing is sent to it yet.

    Raises ConnectError or UsageError.
    """
    return running_scheduler.running_scheduler(given.server, **_flags(given))


async def scheduler_endpoint(given: argparse.Namespace) -> Endpoint:
    """Return where the same scheduler is, for whoever asks it for longer."""
    return await running_scheduler.scheduler_endpoint(given.server, **_flags(given))


async def api_server_and_service(
    given: argparse.Namespace, service: ServicePort
) -> tuple[Endpoint, Endpoint]:
    """Return where the API server is, and how a scheduler behind *service* of it is asked."""
    return await running_scheduler.service_endpoint(service, **_flags(given))


def _flags(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "kubeconfig": given.kubeconfig,
        "context": given.context,
        "certificate_authority": given.certificate_authority,
        "trusts_all": given.insecure_skip_tls_verify,
    }
