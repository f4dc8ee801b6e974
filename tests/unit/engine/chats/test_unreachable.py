"""A service that cannot be reached: words and advice, as for servers."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from tests.fakes.gemini import KEY
from tests.servers.web import HttpServer, answer
from tests.unit.engine.chats.support import open_backend
from tests.unit.engine.chats.test_gemini_backend import collect
from tests.unit.engine.mcp.network.support import certificate
from tui.engine.chats.backends.backend import ModelError


async def failure(url: str) -> ModelError:
    """Ask a service, and give the error."""
    with pytest.raises(ModelError) as caught:
        await collect(await open_backend(url))
    assert KEY not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("days", "reason"), [(1, "self-signed certificate"), (-1, "certificate has expired")]
)
async def test_a_certificate(
    days: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = certificate(tmp_path, "127.0.0.1", days=days)
    if days < 0:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    async with HttpServer(tls=context) as server:
        error = await failure(server.origin)
    assert str(error).startswith(f"{server.origin} has a certificate that cannot be trusted: ")
    assert reason in str(error)
    assert "SSL_CERT_FILE" in error.advice
    assert not error.retryable


async def test_no_tls_where_it_should_be() -> None:
    def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        error = await failure(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert "does not use TLS correctly" in str(error)
    assert "GOOGLE_GEMINI_BASE_URL" in error.advice


async def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    error = await failure(f"http://127.0.0.1:{port}")
    where = f"127.0.0.1:{port}"
    assert str(error) == f"http://{where} refused the connection: nothing is listening at {where}."
    assert "GOOGLE_GEMINI_BASE_URL" in error.advice
    assert error.retryable


async def test_an_unknown_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = await failure("https://nowhere.invalid")
    assert str(error) == "https://nowhere.invalid was not found: there is no host nowhere.invalid."


PASSWORD = "hunter2222"


@pytest.mark.parametrize(
    ("variable", "scheme"),
    [("HTTPS_PROXY", "http://"), ("https_proxy", ""), ("ALL_PROXY", "http://")],
)
async def test_a_proxy_that_refuses_or_is_dead_is_named(
    variable: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with HttpServer(handle=answer(407)) as server:
        place = server.origin.removeprefix("http://")
        monkeypatch.setenv(variable, f"{scheme}user:{PASSWORD}@{place}")
        refused = await failure("https://nowhere.invalid")
    dead = await failure("https://nowhere.invalid")
    start = f"https://nowhere.invalid could not be reached: the proxy {place} ({variable})"
    assert str(refused) == f"{start} refused (407 X)."
    assert str(dead) == f"{start} does not respond."
    for error in (refused, dead):
        assert PASSWORD not in f"{error} {error.advice}"
        assert "NO_PROXY" in error.advice


@pytest.mark.parametrize(
    "variables",
    [
        {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9"},
        {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "10.0.0.0/8, .invalid"},
        {"ALL_PROXY": "socks5://127.0.0.1:9", "NO_PROXY": "nowhere.invalid,[::1]"},
        {"HTTPS_PROXY": "", "HTTP_PROXY": "http://127.0.0.1:9"},
    ],
)
async def test_a_proxy_that_is_not_on_the_way_does_not_matter(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with HttpServer(handle=answer(503, b"{}")) as server:
        assert "overloaded" in str(await failure(server.origin)), "one on this machine"
    if "NO_PROXY" in variables or not variables.get("HTTPS_PROXY", "x"):
        assert "proxy" not in str(await failure("https://nowhere.invalid"))


async def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"odd://user:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
    error = await failure("https://nowhere.invalid")
    assert str(error).startswith("The proxy set in ALL_PROXY cannot be used")
    assert PASSWORD not in f"{error} {error.advice}"


async def look(status: int, body: str) -> ModelError | None:
    """Check a service that answers like this; give the error."""
    kind = "text/html" if body.startswith("<") else "application/json"
    async with HttpServer(handle=answer(status, body.encode(), content_type=kind)) as server:
        backend = await open_backend(server.origin)
        try:
            await backend.check()
        except ModelError as error:
            return error
        finally:
            await backend.aclose()
    return None


async def test_a_check_says_what_is_wrong_with_an_address() -> None:
    invalid = '{"error": {"message": "API key not valid"}}'
    for status, body, words, advice in (
        (404, "{}", "is not a Gemini API", "before /v1beta"),
        (200, "<html>hi</html>", "could not be read", "the service's address"),
        (200, '{"data": []}', "is not a Gemini API", "before /v1beta"),
        (401, "{}", "The key has no access", "for this address"),
        (400, invalid, "The API key was not accepted", "for this address"),
        (301, "", "redirects to another address", "the service's address"),
        (503, "{}", "overloaded or failing", "Try again"),
    ):
        error = await look(status, body)
        assert error is not None, status
        assert KEY not in f"{error} {error.advice}"
        assert words in str(error)
        assert advice in error.advice
    assert await look(200, '{"models": [{"name": "models/gemini-3-flash"}]}') is None
