"""The application of the extender port."""

from fastapi import APIRouter

from berth.service.server.application import Application
from berth.service.server.health import Probes, health_endpoints


def extender_application(*routers: APIRouter, probes: Probes) -> Application:
    """Return an application of *routers* and of *probes*."""
    application = Application(
        title="berth extender",
        description="The endpoints that kube-scheduler calls.",
    )
    for router in (health_endpoints(probes), *routers):
        application.include_router(router)
    return application
