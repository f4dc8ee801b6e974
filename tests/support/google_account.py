"""A Google account in the environment of a test."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.servers.web import HttpServer, answer


@asynccontextmanager
async def google_account(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Give the environment a service account whose tokens come from loopback."""
    token = json.dumps({"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})
    serve = answer(200, token.encode(), content_type="application/json")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    async with HttpServer(handle=serve) as server:
        account = {
            **{"type": "service_account", "project_id": "my-project", "client_id": "1"},
            **{"client_email": "me@my-project.iam.gserviceaccount.com", "private_key_id": "1"},
            **{"private_key": pem.decode(), "token_uri": f"{server.origin}/token"},
        }
        file = folder / "account.json"
        file.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        yield
