"""Google's credentials, against a metadata server and an IAM endpoint on loopback."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from google.auth import iam
from google.auth.compute_engine import _metadata

from tests.servers.authority import Authority, GuardedServer
from tests.servers.web import Exchange, RawServer
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.network.support import define
from tests.unit.engine.sign_in.support import Person, deck, make_sign_ins
from tui.engine.definitions.definition import ServerDefinition, SignInSettings
from tui.engine.sign_in.google import GoogleSession
from tui.engine.sign_in.sign_in_record import AuthError, Challenge, ServerCredentials, Signature
from tui.model.requests import Reply, ReplyAction
from tui.model.servers import ServerStatus as S
from tui.model.settings import AuthProviderType, OAuthSettings

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
OWN = SignInSettings(OAuthSettings(scopes=SCOPES), AuthProviderType.GOOGLE_CREDENTIALS)
ACCOUNT = SignInSettings(
    provider=AuthProviderType.SERVICE_ACCOUNT_IMPERSONATION,
    audience="1234.apps.googleusercontent.com",
    account="mcp@my-project.iam.gserviceaccount.com",
)
ADC = f"{FIXTURE_SECRET}adc"


def id_token() -> str:
    """Make a token that says when it ends; nobody here checks who signed it."""
    parts = ({"alg": "none"}, {"exp": int(time.time()) + 3600, "aud": ACCOUNT.audience})
    packed = [base64.urlsafe_b64encode(json.dumps(one).encode()).decode() for one in parts]
    return ".".join((*(one.rstrip("=") for one in packed), "c2ln"))


async def tell(exchange: Exchange, body: bytes, kind: str = "application/json") -> None:
    await exchange.respond(200, body, content_type=kind, metadata_flavor="Google")


@dataclass
class Google(RawServer):
    """The metadata server of a machine at Google, and its IAM service."""

    minted: int = 0
    asked: list[dict[str, object]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    fails: int = 0

    async def _answer(self, exchange: Exchange) -> None:
        path = exchange.request.path.partition("?")[0]
        if self.fails:
            await exchange.respond(self.fails, metadata_flavor="Google")
        elif path.endswith(":generateIdToken"):
            assert exchange.request.headers["authorization"] == f"Bearer {ADC}-{self.minted}"
            assert ACCOUNT.account in path
            self.asked.append(json.loads(exchange.request.body))
            self.given.append(id_token())
            await exchange.json({"token": self.given[-1]})
        elif path.endswith("/token"):
            self.minted += 1
            token = {"access_token": f"{ADC}-{self.minted}", "expires_in": 3600}
            body = json.dumps({**token, "token_type": "Bearer"}).encode()
            await tell(exchange, body)
        elif "/service-accounts/" in path:
            account = json.dumps({"email": "me@example.com", "scopes": list(SCOPES)}).encode()
            await tell(exchange, account)
        else:
            await tell(exchange, b"my-project", "text/plain")


@pytest.fixture
async def google(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    """Run Google, which the credentials of this machine come from."""
    async with Google() as server:
        place = f"127.0.0.1:{server.port}"
        monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", place)  # read once from a variable
        monkeypatch.setenv("GCE_METADATA_IP", place)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setattr(
            iam, "_IAM_IDTOKEN_ENDPOINT", f"http://{place}/v1/accounts/{{}}:generateIdToken"
        )
        yield server


def session(definition: ServerDefinition, tmp_path: Path) -> ServerCredentials:
    found = make_sign_ins(Person(), tmp_path).credentials(definition)
    assert isinstance(found, GoogleSession)
    return found


async def test_a_google_api_gets_the_users_credentials(tmp_path: Path, google: Google) -> None:
    one = session(define("https://reports.googleapis.com/mcp", sign_in=OWN), tmp_path)
    signed = await asyncio.gather(*(one.signature() for _ in range(5)))
    assert {dict(each.headers)["authorization"] for each in signed} == {f"Bearer {ADC}-1"}
    assert google.minted == 1


async def test_another_host_gets_them_after_one_question(tmp_path: Path, google: Google) -> None:
    person = Person(reply=lambda _: Reply(ReplyAction.CANCEL))
    definition = define("https://my-service.run.app/mcp", sign_in=OWN)
    sign_ins = make_sign_ins(person, tmp_path)
    one = sign_ins.credentials(definition)
    assert one is not None
    with pytest.raises(AuthError, match="requests your Google credentials"):
        await one.signature()
    with pytest.raises(AuthError, match="cancelled"):
        await sign_ins.sign_in(definition)
    with pytest.raises(AuthError):
        await one.signature()
    assert google.minted == 0
    person.reply = lambda _: Reply(ReplyAction.ACCEPT)
    await sign_ins.sign_in(definition)
    request = person.asked[-1]
    assert (request.host, request.scopes) == ("my-service.run.app", SCOPES)
    [note] = request.notes
    assert "Google credentials" in note
    assert request.url == ""
    assert (await one.signature()).token == f"{ADC}-1"
    await session(definition, tmp_path).signature()
    more = replace(OWN, oauth=OAuthSettings(scopes=(*SCOPES, "more")))
    with pytest.raises(AuthError, match="requests your"):
        await session(define(definition.endpoint.url, sign_in=more), tmp_path).signature()
    await sign_ins.sign_out(definition)
    with pytest.raises(AuthError, match="requests your"):
        await session(definition, tmp_path).signature()


async def test_a_service_account_gives_an_id_token(tmp_path: Path, google: Google) -> None:
    one = session(define("https://internal.example.com/mcp", sign_in=ACCOUNT), tmp_path)
    assert (await one.signature()).token == google.given[0]
    assert (await one.signature()).token == google.given[0]
    assert len(google.asked) == 1
    assert google.asked[0]["audience"] == ACCOUNT.audience
    assert google.asked[0]["includeEmail"] is True


@pytest.mark.usefixtures("google")
async def test_the_paying_project_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "payer")
    url = "https://reports.googleapis.com/mcp"
    signed = await session(define(url, sign_in=OWN), tmp_path).signature()
    assert signed.headers["x-goog-user-project"] == "payer"
    named = define(url, sign_in=OWN, headers={"X-Goog-User-Project": "mine"})
    assert "x-goog-user-project" not in (await session(named, tmp_path).signature()).headers


async def test_without_credentials_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    person = Person()
    async with Authority() as server, deck(server.issuer, person, tmp_path, sign_in=ACCOUNT) as one:
        failure = await one.fails(S.NEEDS_SIGN_IN)
        assert "no Google credentials" in failure.reason
        assert "gcloud auth" in failure.advice


async def test_a_token_that_is_refused_is_replaced_once(tmp_path: Path, google: Google) -> None:
    authority = Authority(tokens={f"{ADC}-2": ""})
    async with GuardedServer(authority=authority) as guarded:
        person = Person()
        async with deck(guarded.url, person, tmp_path, sign_in=OWN) as one:
            await one.connect()
    assert google.minted == 2


async def test_only_a_first_refusal_gets_another_token(tmp_path: Path, google: Google) -> None:
    one = session(define("https://reports.googleapis.com/mcp", sign_in=OWN), tmp_path)
    sent = await one.signature()
    assert await one.refused(Challenge(401), sent, 0)
    assert not await one.refused(Challenge(401), sent, 1)
    assert not await one.refused(Challenge(403), sent, 0)
    assert not await one.refused(Challenge(401), Signature("", {}), 0)
    assert google.minted == 1


async def test_nothing_is_sent_unencrypted(tmp_path: Path) -> None:
    one = session(define("http://reports.googleapis.com/mcp", sign_in=OWN), tmp_path)
    with pytest.raises(AuthError, match="not encrypted"):
        await one.signature()
