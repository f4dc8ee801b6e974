"""What tests of network servers share."""

# ruff: noqa: ANN401 - what is passed on is whatever it was

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.web import ECHO, Exchange, Handler, Message, RawServer
from tests.support.definitions import define_server
from tests.unit.engine.mcp.support import LATER, Running, Watcher, eventually, running
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.backoff import RetryPolicy
from tui.engine.mcp.manager import ServerManager
from tui.model.events import ServerStatusChanged
from tui.model.servers import Failure, ServerId, Transport
from tui.model.servers import ServerStatus as S

WEB = ServerId("web")


def define(url: str, transport: Transport = Transport.HTTP, **more: Any) -> ServerDefinition:
    """Define a server on the network."""
    return define_server(WEB, transport=transport, url=url, **more)


@asynccontextmanager
async def connected(
    url: str, transport: Transport = Transport.HTTP, retry: RetryPolicy = LATER, **more: Any
) -> Running:
    """Run a server and wait until it is ready."""
    async with running(define(url, transport, **more), retry=retry) as (manager, watcher):
        await eventually(lambda: len(watcher.statuses(WEB)) >= 2)
        assert watcher.statuses(WEB) == [S.STARTING, S.READY], watcher.last(WEB)
        yield manager, watcher


@asynccontextmanager
async def answering(
    on: Handler | dict[str, Handler] | None = None, *, sessions: bool = False, **more: Any
) -> AsyncIterator[tuple[RawServer, ServerManager, Watcher]]:
    """Connect to a raw server that does something else than it should, at first on calls."""
    instead = {"tools/call": on} if callable(on) else on or {}
    server = RawServer(instead, set() if sessions else None)
    async with server, connected(server.url, **more) as (manager, watcher):
        yield server, manager, watcher


async def refused(
    url: str, transport: Transport = Transport.HTTP, **more: Any
) -> tuple[S, Failure]:
    """Try to connect; gives the status that the first attempt leads to, and why."""
    async with running(define(url, transport, **more)) as (_, watcher):
        await eventually(lambda: len(watcher.statuses(WEB)) >= 2)
        change = [e for e in watcher.of(ServerStatusChanged) if e.server == WEB][1]
    assert change.failure is not None, change
    return change.status, change.failure


async def reason(url: str, transport: Transport = Transport.HTTP, **more: Any) -> str:
    """Try to connect; gives the reason why that failed."""
    return (await refused(url, transport, **more))[1].reason


def broken_off() -> dict[str, Handler]:
    """Answer a call on a stream that breaks off, and go on for who asks from there."""
    asked: list[object] = []

    async def begin(exchange: Exchange) -> None:
        asked.append(exchange.request.message["id"])
        await exchange.begin(200, content_type="text/event-stream")
        await exchange.event(id="a1", retry="1", data="")

    async def go_on(exchange: Exchange) -> None:
        if "last-event-id" not in exchange.request.headers:
            await exchange.respond(405)
            return
        await exchange.begin(200, content_type="text/event-stream")
        other = {"content": [{"type": "text", "text": "other"}]}
        await exchange.event({"id": 99_999, "result": other})
        await exchange.event({"id": asked[0], "result": {"content": []}})

    return {"tools/call": begin, "GET": go_on}


def certificate(
    folder: Path,
    host: str = "127.0.0.1",
    *,
    days: int = 1,
    name: str = "own",
    signer: Path | None = None,
) -> Path:
    """Write a certificate with its key, signed by an authority's or by its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    root = serialization.load_pem_private_key(signer.read_bytes(), None) if signer else key
    assert isinstance(root, ec.EllipticCurvePrivateKey)
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)])
        for one in (name, signer.stem if signer else name)
    )
    now, number = datetime.now(UTC), x509.random_serial_number()
    dates = now - timedelta(days=9), now + timedelta(days=days)
    address = x509.IPAddress(ip_address(host))
    made = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), number, *dates)
        .add_extension(x509.BasicConstraints(ca=not signer, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(root, hashes.SHA256())
    )
    file, pem = folder / f"{name}.pem", serialization.Encoding.PEM
    secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.write_bytes(key.private_bytes(pem, *secret) + made.public_bytes(pem))
    return file


def stateless(**more: Message) -> dict[str, Handler]:
    """Give what a server of 2026-07-28 answers: to `server/discover`, `tools/list` and more."""
    about = {"ttlMs": 0, "cacheScope": "public"}
    capabilities: Message = {"tools": {}} | ({"prompts": {}} if "prompts/list" in more else {})
    known = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    results: dict[str, Message] = {
        "server/discover": {**known, **about, "resultType": "complete"},
        "tools/list": {"tools": [ECHO], **about},
    }

    def giving(result: Message) -> Handler:
        return lambda exchange: exchange.result(result)

    return {method: giving(result) for method, result in (results | more).items()}
