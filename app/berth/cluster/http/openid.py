"""OpenID discovery: how others verify the tokens of service accounts, without asking for each."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from berth.cluster.access.service_account_tokens import ISSUER
from berth.cluster.access.signing_key import ALGORITHM, SigningKey
from berth.cluster.http.discovery import address_of

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
CACHEABLE: Final = {"Cache-Control": "public, max-age=3600"}


def routes(key: SigningKey) -> list[Route]:
    """Return the routes of the documents about the issuer that signs with *key*."""
    keys = msgspec.json.encode(key.public_keys)

    async def configuration(request: Request) -> Response:
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{address_of(request)}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }
        body = msgspec.json.encode(document)
        return Response(body, media_type="application/json", headers=CACHEABLE)

    async def jwks(_request: Request) -> Response:
        return Response(keys, media_type="application/jwk-set+json", headers=CACHEABLE)

    return [Route(CONFIGURATION, configuration), Route(KEYS, jwks)]
