"""Writes to persistent volumes and their claims (spec §2.11)."""

from berth.kube.client.api import Api
from berth.kube.objects.raw import decoder
from berth.kube.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    claim_body,
    volume_body,
)

decode_volume = decoder(PersistentVolume)
decode_claim = decoder(PersistentVolumeClaim)


async def update_volume(client: Api, volume: PersistentVolume) -> PersistentVolume:
    """Replace a volume and return what the API made of it.

    Raises ConflictError when it was changed since *volume* was read.
    """
    path = f"/api/v1/persistentvolumes/{volume.metadata.name}"
    return decode_volume(await client.request("PUT", path, body=volume_body(volume)))


async def update_claim(client: Api, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Replace a claim, as :func:`update_volume` does a volume."""
    meta = claim.metadata
    path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
    return decode_claim(await client.request("PUT", path, body=claim_body(claim)))
