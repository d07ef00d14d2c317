"""The key that signs service account tokens, and how others get to verify them."""

import base64
import hashlib
from functools import cached_property, lru_cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.types import Options

from berth.cluster.resources import Object

ALGORITHM: Final = "ES256"

VERIFIED_KEPT: Final = 1_000
"""Tokens whose signature is not verified again: a client sends the same one for an hour."""

UNTIMED: Final[Options] = {
    "verify_aud": False,
    "verify_exp": False,
    "verify_iat": False,
    "verify_iss": False,
    "verify_jti": False,
    "verify_nbf": False,
    "verify_sub": False,
}
"""Signatures only: claims are judged by our own clock."""


def new_signing_key() -> bytes:
    """Return a new private key, as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


class BadSignatureError(Exception):
    """A token that this key has not signed, or that is none."""


class SigningKey:
    """Signs and verifies JSON Web Tokens."""

    def __init__(self, pem: bytes) -> None:
        """*pem* is what :func:`new_signing_key` returned; ValueError for anything else."""
        key = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise ValueError("a key for signing tokens must be of the curve P-256")
        self._key = key
        self.verify = lru_cache(VERIFIED_KEPT)(self._verify)

    def sign(self, claims: Object) -> str:
        return jwt.encode(claims, self._key, ALGORITHM, headers={"kid": self._key_id})

    def _verify(self, token: str) -> Any:
        """Return the claims of a token that this key signed, not to be changed.

        Raises BadSignatureError.
        """
        try:
            return jwt.decode(token, self._key.public_key(), [ALGORITHM], UNTIMED)
        except (jwt.InvalidTokenError, ValueError, RecursionError) as exc:
            raise BadSignatureError(str(exc)) from exc

    @cached_property
    def public_keys(self) -> Object:
        """The JSON Web Key Set of ``/openid/v1/jwks``."""
        algorithm = jwt.algorithms.ECAlgorithm
        key = algorithm.to_jwk(self._key.public_key(), as_dict=True)
        named = {"use": "sig", **key, "kid": self._key_id, "alg": ALGORITHM}
        return {"keys": [named]}

    @cached_property
    def _key_id(self) -> str:
        """The hash of the public key, as the API server names keys."""
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return base64.urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode()
