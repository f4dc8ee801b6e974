"""An authorization server with a consent page, and an MCP server that takes only its tokens."""

import asyncio
import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

from tests.servers.web import Exchange, RawServer
from tests.support.leaks import FIXTURE_SECRET

Form = dict[str, str]


@dataclass
class Authority(RawServer):
    """An authorization server (OAuth 2.1) over http on loopback; `on` names paths.

    Attributes:
        metadata: What its metadata says beyond the usual; None leaves a field out.
        life: What it says a token lives, in seconds.
        clients: Registered clients, by id.
        tokens: Access tokens that are good, each with its scopes.
        refreshers: Refresh tokens that are good, each with its scopes; each counts once, and all
            are worth nothing once one comes again.
        forms: What came to the token endpoint, oldest first.
        asked: What came to the authorization endpoint, oldest first.
        assertions: What vouches for a workload.
        revoked: Tokens that were revoked.
        grants: Extra fields of token answers; None leaves a field out.
        redirect: Extra parameters of the redirect; None leaves one out.
        registration: Extra fields of the answer to a registration.
        most: The scopes that it grants whatever is asked for, or None.
        says_no: Whether the person refuses.
        slow: Seconds that the token endpoint takes.
        fails: Statuses that the token endpoint answers with before it works.
        refuses: Gives the error for what came to an address, or nothing.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    life: Any = 3600
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    refreshers: dict[str, str] = field(default_factory=dict)
    forms: list[Form] = field(default_factory=list)
    asked: list[Form] = field(default_factory=list)
    assertions: list[str] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    grants: dict[str, Any] = field(default_factory=dict)
    redirect: dict[str, Any] = field(default_factory=dict)
    registration: dict[str, Any] = field(default_factory=dict)
    most: str | None = None
    says_no: bool = False
    slow: float = 0.0
    fails: list[int] = field(default_factory=list)
    refuses: Callable[[str, Form], Form | None] = lambda _path, _form: None
    _codes: dict[str, Form] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        """Who it is."""
        return self.origin

    def described(self) -> dict[str, Any]:
        """Give its metadata."""
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }
        return {name: value for name, value in found.items() if value is not None}

    def refreshes(self) -> list[Form]:
        """Give the refreshes that were asked for."""
        return [form for form in self.forms if form["grant_type"] == "refresh_token"]

    async def _answer(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.request.path)
        if parts.path in self.on:
            await self.on[parts.path](exchange)
            return
        asked = dict(parse_qsl(parts.query)) or _form(exchange)
        if (error := self.refuses(parts.path, asked)) is not None:
            await self._refuse(exchange, parts.path, asked, error)
            return
        match exchange.request.method, parts.path:
            case "GET", "/.well-known/oauth-authorization-server":
                await exchange.json(self.described())
            case "GET", "/authorize":
                await self._page(exchange, parse_qsl(parts.query))
            case "POST", "/consent":
                await self._consent(exchange, _form(exchange))
            case "POST", "/token":
                await self._token(exchange, _form(exchange))
            case "POST", "/register":
                client = f"client-{len(self.clients) + 1}"
                self.clients[client] = json.loads(exchange.request.body)
                answer = {**self.clients[client], "client_id": client, **self.registration}
                await exchange.json(answer, 201)
            case "POST", "/revoke":
                token = _form(exchange)["token"]
                self.revoked.append(token)
                self.tokens.pop(token, None)
                self.refreshers.pop(token, None)
                await exchange.respond(200)
            case _:
                await exchange.respond(404)

    async def _refuse(self, exchange: Exchange, path: str, asked: Form, error: Form) -> None:
        if path == "/authorize":
            self.asked.append(asked)
            await self._send_back(exchange, asked, error)
            return
        self.forms += [asked] if path == "/token" else []
        await exchange.json(error, 400)

    async def _page(self, exchange: Exchange, pairs: list[tuple[str, str]]) -> None:
        asked = dict(pairs)
        self.asked.append(asked)
        client = self.clients.get(asked.get("client_id", ""), {})
        is_known = asked.get("redirect_uri") in client.get("redirect_uris", ())
        right = {"response_type": "code", "code_challenge_method": "S256"}
        is_whole = right.items() <= asked.items() and asked.keys() >= {"state", "code_challenge"}
        if len(pairs) != len(asked) or not is_known or not is_whole:
            await exchange.json({"error": "invalid_request"}, 400)
            return
        hidden = html.escape(urlencode(asked), quote=True)
        page = (
            '<form method="post" action="/consent"><p>Let gemdeck in?</p>'
            f'<input type="hidden" name="request" value="{hidden}"><button>Yes</button></form>'
        )
        await exchange.respond(200, page.encode(), content_type="text/html")

    async def _consent(self, exchange: Exchange, form: Form) -> None:
        asked = dict(parse_qsl(form["request"]))
        code = f"{FIXTURE_SECRET}code-{len(self._codes) + 1}"
        self._codes[code] = asked
        outcome = {"error": "access_denied"} if self.says_no else {"code": code}
        await self._send_back(exchange, asked, outcome)

    async def _send_back(self, exchange: Exchange, asked: Form, outcome: Form) -> None:
        found = {**outcome, "state": asked.get("state"), "iss": self.issuer, **self.redirect}
        query = urlencode({name: value for name, value in found.items() if value is not None})
        await exchange.respond(302, location=f"{asked['redirect_uri']}?{query}")

    async def _token(self, exchange: Exchange, form: Form) -> None:
        self.forms.append(form)
        if self.fails:
            await exchange.json({"error": "temporarily_unavailable"}, self.fails.pop(0))
            return
        scope = self._granted(form)
        await asyncio.sleep(self.slow)  # what counts once is used up before its answer arrives
        if scope is None:
            await exchange.json({"error": "invalid_grant"}, 400)
            return
        scope = scope if self.most is None else self.most
        number = len(self.forms)
        token, refresher = f"{FIXTURE_SECRET}token-{number}", f"{FIXTURE_SECRET}refresh-{number}"
        self.tokens[token], self.refreshers[refresher] = scope, scope
        answer = {"access_token": token, "token_type": "bearer", "expires_in": self.life}
        answer |= {"refresh_token": refresher, "scope": scope, **self.grants}
        kept = {name: value for name, value in answer.items() if value is not None}
        await exchange.json(kept)

    def _granted(self, form: Form) -> str | None:
        """Give the scopes of a request for a token, if it is a good one."""
        match form["grant_type"]:
            case "authorization_code":
                asked = self._codes.pop(form["code"], {})
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                given = {
                    "redirect_uri": form.get("redirect_uri"),
                    "client_id": form.get("basic", form.get("client_id", "")).partition(":")[0],
                    "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
                }
                return asked.get("scope", "") if given.items() <= asked.items() else None
            case "refresh_token":
                if form["refresh_token"] not in self.refreshers:  # used twice: perhaps stolen
                    self.refreshers.clear()
                    self.tokens.clear()
                return self.refreshers.pop(form["refresh_token"], None)
            case "client_credentials":
                return form.get("scope", "")
            case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                return form.get("scope", "") if form["assertion"] in self.assertions else None
        return None


@dataclass
class GuardedServer(RawServer):
    """An MCP server that takes the tokens of an authority.

    Attributes:
        authority: Which.
        resource: What its metadata says beyond the usual; None leaves a field out.
        scope: The scopes that it names when it refuses a request without a token.
        call_scope: The scope without which no tool runs.
        publishes: Whether it has metadata at all.
        seen: The tokens that came in, oldest first; empty for none.
    """

    authority: Authority = field(default_factory=Authority)
    resource: dict[str, Any] = field(default_factory=dict)
    scope: str = "read"
    call_scope: str = ""
    publishes: bool = True
    seen: list[str] = field(default_factory=list)

    async def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        path = urlsplit(request.path).path
        if path in self.on:
            await self.on[path](exchange)
            return
        if path == "/.well-known/oauth-protected-resource/mcp" and self.publishes:
            found = {"resource": self.url, "authorization_servers": [self.authority.issuer]}
            await exchange.json(found | self.resource)
            return
        if path.startswith("/.well-known/"):
            await exchange.respond(404)
            return
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        token = dict(parse_qsl(urlsplit(request.path).query)).get("access_token", token)
        self.seen.append(token)
        granted = self.authority.tokens.get(token)
        is_call = bool(request.body) and request.message.get("method") == "tools/call"
        if granted is None:
            await exchange.respond(401, www_authenticate=f'Bearer scope="{self.scope}"')
        elif is_call and self.call_scope not in {"", *granted.split()}:
            words = f'Bearer error="insufficient_scope", scope="{self.call_scope}"'
            await exchange.respond(403, www_authenticate=words)
        else:
            await super()._answer(exchange)


async def walk_through(url: str, *, comes_back: bool = True) -> httpx2.Response:
    """Do what a person does in a browser: open the page, press its button, and be sent back.

    A browser on another machine does not come back; its address then says where it would.
    """
    async with httpx2.AsyncClient(follow_redirects=comes_back, trust_env=False) as browser:
        page = await browser.get(url)
        assert page.status_code < 400, page.text
        hidden = re.search(r'name="request" value="([^"]*)"', page.text)
        assert hidden is not None
        target = httpx2.URL(url).join("/consent")
        return await browser.post(target, data={"request": html.unescape(hidden[1])})


def _form(exchange: Exchange) -> Form:
    """Give what a form holds; of JSON, the text of its members."""
    body = exchange.request.body
    form = dict(parse_qsl(body.decode()))
    if body[:1] == b"{":
        form = {name: str(value) for name, value in json.loads(body).items()}
    if (basic := exchange.request.headers.get("authorization", "")).startswith("Basic "):
        form["basic"] = base64.b64decode(basic.removeprefix("Basic ")).decode()
    return form
