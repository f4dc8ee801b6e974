"""A Google account in the environment of a test."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


@asynccontextmanager
async def google_account(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Give the environment a service account whose tokens come from loopback."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        body = json.dumps({"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})
        kind = "Content-Type: application/json\r\nConnection: close"
        answer = f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        writer.write(answer.encode())
        await writer.drain()
        writer.close()

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        account = {
            **{"type": "service_account", "project_id": "my-project", "client_id": "1"},
            **{"client_email": "me@my-project.iam.gserviceaccount.com", "private_key_id": "1"},
            **{"private_key": pem.decode(), "token_uri": f"http://127.0.0.1:{port}/token"},
        }
        file = folder / "account.json"
        file.write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        yield
