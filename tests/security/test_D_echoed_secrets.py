"""A server that repeats the secret it was given: masked wherever its text comes in."""

import asyncio
import base64
import json
import shlex
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote

import pytest
from mcp_types import JSONRPCResponse

from tests.cli.running import Result, run, write_settings
from tests.fakes.gemini_script import Call, Say
from tests.security.decks import READY, Play, Turncoat, called, tool
from tests.servers.parrot import replies
from tests.servers.web import Exchange, RawServer, answer
from tests.support.leaks import FIXTURE_SECRET
from tests.unit.engine.mcp.asking import Stage
from tests.unit.engine.mcp.network.support import connected, define
from tests.unit.engine.mcp.support import FOLDER, Watcher, call, eventually, ready, script
from tests.unit.engine.mcp.test_flow_control import Time
from tests.unit.engine.sign_in.support import Person, guarded, token_session
from tests.unit.engine.sign_in.support import deck as signing_in
from tui.cli.output import ExitCode
from tui.engine.definitions.definition import Inheritance, ServerDefinition
from tui.engine.files.paths import usable_state_dir
from tui.engine.keys.secret_store import SecretStore
from tui.engine.logs import redaction
from tui.engine.logs.redaction import Redactor, mask_of, named_secrets, named_words
from tui.engine.mcp.catalog.offered_tool import TextPart, ToolCallError
from tui.engine.mcp.catalog.results import convert_result
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.session.sdk_patches import read_call_result
from tui.engine.mcp.transports.jsonrpc_lines import MAX_ON_LOOP, FlowControl, decode
from tui.engine.mcp.transports.jsonrpc_lines import read as read_line
from tui.engine.mcp.wire.wire import Wire
from tui.model.chat import ToolCallStatus
from tui.model.consent import Choice
from tui.model.requests import ConfirmationRequest, FormRequest
from tui.model.servers import ServerId

SECRET: Final = FIXTURE_SECRET + 'with "quotes", a \\ and ä/+9%'
"""Written in another way in JSON, in addresses and in Base64."""

PLAIN: Final = FIXTURE_SECRET + "of-a-header"

HIDES: Final = mask_of("PARROT_TOKEN")

PARROT: Final = str(FOLDER / "parrot.py")


def spoken(said: object) -> list[str]:
    """List what a text holds of the secrets, in whatever form."""
    text = str(said)
    forms = [FIXTURE_SECRET, quote(SECRET[15:]), json.dumps(SECRET[15:])[1:-1]]
    forms += [base64.b64encode(b" " * n + FIXTURE_SECRET.encode())[4:16].decode() for n in range(3)]
    return [form for form in forms if form in text]


@asynccontextmanager
async def over_http(headers: Mapping[str, str]) -> AsyncIterator[ServerDefinition]:
    """Serve over HTTP what the parrot says."""

    class Parrot(RawServer):
        async def _answer(self, exchange: Exchange) -> None:
            message = exchange.request.message if exchange.request.body else {}
            if message.get("method", "server/discover") == "server/discover" or "id" not in message:
                await super()._answer(exchange)
                return
            await exchange.begin(200, content_type="text/event-stream")
            for reply in replies(message, PLAIN):
                await exchange.event(reply)

    async with Parrot() as server:
        yield define(server.url, headers=headers)


async def hear(stage: Stage, server: str) -> list[Any]:
    """Let a server say all that it can, and give it."""
    manager, said = stage.manager, list[Any]()
    for name in ("say", "structure", "fail", "media", "report"):
        result = await call(manager, name, {}, said.append)
        said += [result, result.raw, result.pictures]
    with pytest.raises(ToolCallError) as broken:
        await call(manager, "break", {})
    features = manager.features(ServerId(server))
    [resource] = manager.catalogs[ServerId(server)].resources
    reading = await features.read_resource(resource.uri)
    said += [str(broken.value), reading, reading.raw, await features.get_prompt("tell", {})]
    said += [await features.complete("tell", "a", "", {}), await features.request("unknown", {})]
    return [*said, manager.instructions(), [one.declaration for one in manager.offered_tools()]]


async def check(definition: ServerDefinition, mask: str) -> None:
    """Run a parrot: nothing of what it says has its secret, and the mask is in its place."""
    stage = Stage()
    stage.context.wire = Wire(redactor=stage.context.redactor)
    async with ready(definition, context=stage.context) as (stage.manager, stage.watcher):
        said = await hear(stage, definition.id)
        exported = stage.context.wire.export(one.number for one in stage.context.wire.frames())
    everything = [*said, *stage.events, *stage.watcher.events, stage.manager.catalogs]
    assert spoken(everything) == []
    assert spoken(exported) == []
    for one in (said[0], said[1], stage.manager.catalogs, said[-1], said[-2]):
        assert mask in str(one), one


WAYS: Final[dict[str, dict[str, Any]]] = {
    "PARROT_TOKEN": {"env": {"PARROT_TOKEN": SECRET}},
    "api-key": {"more": ("--api-key", SECRET)},
    "token": {"more": ("--keep", f"--token={SECRET}")},
    "X-Key": {"more": ("--header", f"X-Key: {SECRET}")},
}
"""How the parrot is told its secret, by the name in the mask."""


@pytest.mark.parametrize("name", WAYS)
async def test_D21_a_secret_that_a_server_repeats_is_masked(name: str) -> None:
    way = WAYS[name]
    await check(script("parrot", *way.get("more", ()), env=way.get("env", {})), mask_of(name))


@pytest.mark.parametrize(
    "headers", [{"Authorization": f"Bearer {PLAIN}"}, {"X-Api-Key": PLAIN}], ids=list
)
async def test_D21_a_header_that_a_server_repeats_is_masked(headers: dict[str, str]) -> None:
    async with over_http(headers) as definition:
        await check(definition, mask_of(*headers))


async def test_D21_a_question_of_a_server_is_masked_and_its_own_id_comes_back() -> None:
    stage = Stage()
    definition = script("parrot", env={"PARROT_TOKEN": SECRET})
    async with ready(definition, context=stage.context) as (stage.manager, stage.watcher):
        task = asyncio.create_task(call(stage.manager, "ask"))
        asked = await stage.answer(FormRequest, content={"a": "x"})
        await task
        await eventually(lambda: "answered True" in stage.watcher.log("parrot"))
    assert spoken(asked) == []
    assert asked.message == f"Is it {HIDES}?"
    assert [field.title for field in asked.fields] == [HIDES]


@pytest.mark.writes_secrets("credentials.json")
async def test_D21_a_masked_secret_is_in_no_file_and_comes_back_in_no_call(
    play: Play, tmp_path: Path
) -> None:
    """Neither to the server itself nor to another; no question is asked about such a call."""
    word = f"{FIXTURE_SECRET.replace('3', 'e')}word"
    SecretStore(usable_state_dir(), pytest.fail).set("bird", word)
    kept = {"PARROT_TOKEN": "${keyring:bird}"}
    entry = {"command": sys.executable, "args": [PARROT], "env": kept}
    other = Turncoat("other", tmp_path)
    other.offer(tool("keep"))
    copied = [HIDES, HIDES.strip("[]").replace(" ", "\n"), HIDES.replace("_", "\\_").upper()]
    wrote = [(n, {"text": f"x {c}"}) for n in ("write", "keep") for c in copied]
    wrote += [("keep", {"text": "[secret OTHER hidden by gemdeck]"})]
    settings = {"mcpServers": {"parrot": entry, other.name: other.entry}}
    script = [[Call([("say", {})])], *([Call([one])] for one in wrote), [Say("done")]]
    async with play(script, other, settings=settings, allowed_tools=("parrot", "other")) as deck:
        await eventually(lambda: deck.status("parrot") is READY)
        await deck.ask()
        [first, *refused, last] = deck.calls
        assert first.status is ToolCallStatus.OK
        assert [one.status for one in refused] == [ToolCallStatus.ERROR] * 6
        assert all(HIDES in one.result and "The call was not run" in one.result for one in refused)
        assert (last.status, len(other.calls)) == (ToolCallStatus.OK, 1), "it is no mask of ours"
        assert deck.raised(ConfirmationRequest) == []
        assert HIDES in deck.seen(1)
        assert all(word not in deck.seen(number) for number in range(len(deck.fake.requests)))
        assert word not in str(deck.events)
    files = [file for file in Path.home().parent.rglob("*") if file.is_file()]
    assert {file.name for file in files if word.encode() in file.read_bytes()} == {
        "credentials.json"
    }


async def test_D21_a_call_that_the_user_edits_into_one_with_a_mask_is_not_run(
    play: Play, tmp_path: Path
) -> None:
    server = Turncoat("shop", tmp_path)
    server.offer(tool("keep"))
    settings = {"mcpServers": {"shop": {**server.entry, "env": {"SHOP_TOKEN": "another-one-7"}}}}
    async with play(called(("keep", {"text": "x"})), server, settings=settings) as deck:
        deck.engine.send("go")
        await deck.decide(Choice.ONCE, arguments=json.dumps({"text": mask_of("SHOP_TOKEN")}))
        await deck.idle()
        [row] = deck.calls
    assert (row.status, server.calls) == (ToolCallStatus.ERROR, [])
    assert "The call was not run" in row.result


async def trusting(*words: str) -> Result:
    return await run(*words, "--trust-folder", str(Path.home().resolve()))


@pytest.mark.writes_secrets("settings.json")
async def test_D21_no_command_prints_what_a_server_repeats() -> None:
    entry = {"command": sys.executable, "args": [PARROT], "env": {"PARROT_TOKEN": SECRET}}
    plain = {"command": sys.executable, "args": [str(FOLDER / "raw.py")]}
    write_settings({"mcpServers": {"parrot": entry, "raw": plain}})
    uri = f"db://reader:{HIDES}@host/rows"
    commands = [
        *("mcp show parrot --json", "mcp tools parrot --json", "mcp tools parrot"),
        *("mcp list --json", "mcp logs parrot --json", "mcp request parrot resources/list"),
        *("mcp call parrot structure --json", "mcp call parrot say", "mcp call parrot break"),
        *("mcp prompt parrot tell --json", "mcp request parrot tools/list"),
        """mcp request parrot tools/call --params '{"name": "structure"}'""",
        shlex.join(["mcp", "read", "parrot", uri, "--json"]),
    ]
    for command in commands:
        result = await trusting(*shlex.split(command))
        said = result.stdout + result.stderr
        assert spoken(said) == [], command
        assert HIDES in said or "list --json" in command or "logs" in command, (command, said)
    for server, name in (("parrot", "write"), ("raw", "echo")):
        result = await trusting("mcp", "call", server, name, f"text=a {HIDES}")
        assert result.code == ExitCode.ERROR
        assert f"The arguments contain {HIDES}" in result.stderr


SECRET_BY_NAME: Final = {
    ("API_TOKEN", "Zq7-Zq7-Zq7"): ["Zq7-Zq7-Zq7"],
    ("GITHUB_PAT", "ghp_0123456789"): ["ghp_0123456789"],
    ("Authorization", "Bearer abc.DEF-123"): ["Bearer abc.DEF-123", "abc.DEF-123"],
    ("DB_CREDS", "reader:Zq7!x9"): ["reader:Zq7!x9"],
    ("PASSPHRASE", "correct horse battery staple"): ["correct horse battery staple"],
    ("url", "https://u:Zq7!x9_k@h/?api_key=Zq7!x9_l&q=a"): ["Zq7!x9_k", "Zq7!x9_l"],
    ("DATABASE_URL", "postgres://u:Zq7!x9_k@h/db"): ["Zq7!x9_k"],
    ("SECRET_KEY", "/k3+Fj0/x9=="): ["/k3+Fj0/x9=="],
    ("AWS_SECRET_ACCESS_KEY", "/Ab3kZ9qR7tY"): ["/Ab3kZ9qR7tY"],
    ("--password", "~/Ab3kZ9qR7tY"): ["~/Ab3kZ9qR7tY"],
    ("DB_PASSWORD", "Summer2024@Company"): ["Summer2024@Company"],
    ("KEY_FILE", "/" + "a" * 60 + "/b!"): ["/" + "a" * 60 + "/b!"],  # in linear time
}
ORDINARY: Final = (
    *("KEY_FILE ./keys", "TENANT 0f8fad5b-d9cb-469f-a165-70867728950e", "PASSWORD password1"),
    *("API_TOKEN Zq7!x", "TOKEN localhost", "TOKEN localhost:8080", "PIN_TOKEN 12345678"),
    *("SSH_KEY /home/u/.ssh/id_ed25519_of_work", "KEY_FILE ~/keys/server-key-of-2026.pem"),
    *("KEY_FILE C:\\keys\\server-key-of-2026.pem", "AUTH_TYPE service-account"),
    *("TOKEN_URL https://login.example.com/oauth/token", "AUTH_USER jane.doe@example.com"),
    *("GIT_AUTHOR_NAME Maximilian Mustermann", "PRIVATE_REGISTRY registry.example.com:5000"),
    "DATABASE_URL postgres://postgres:postgres@localhost/postgres",
    *("url https://h/mcp?project=the-project-of-the-whole-team", "COLOUR Zq7-Zq7-Zq7"),
)
"""Names with values that are no secret; one is too short to be told from other text."""


def test_D21_what_stands_in_ordinary_text_is_no_secret_by_its_name() -> None:
    for (name, value), found in SECRET_BY_NAME.items():
        assert set(found) <= set(named_secrets(name, value)), "a part of it may be one as well"
    for words in ORDINARY:
        assert not [*named_secrets(*words.split(" ", 1))], words


def test_D21_the_words_of_a_command_line_have_the_names_before_them() -> None:
    words = ["run", "-e", "A_TOKEN=a:b", "--env=B_KEY=c", "--token", "d"]
    words += ["--header", "X-Key: e", "f"]
    found = [*named_words(words)]
    named = [("A_TOKEN", "a:b"), ("B_KEY", "c"), ("--token", "d"), ("X-Key", "e"), ("", "f")]
    assert [one for one in named if one not in found] == []
    assert ("--token", "--header") not in found


@pytest.mark.parametrize(
    ("text", "is_mask"),
    [
        ("{}", True),
        ("export TOKEN={} # as before", True),
        ("**{}**", True),
        ("`{}`".replace("{}", "(secret API_TOKEN hidden by gemdeck)"), True),
        ("secret API\\_TOKEN hidden by gemdeck", True),
        ("[SECRET API_TOKEN HIDDEN BY GEMDECK]", True),
        ("[secret\nAPI_TOKEN hidden\n by gemdeck]", True),
        ("https://h/?q=%5Bsecret%20API_TOKEN%20hidden%20by%20gemdeck%5D", True),
        ("\uff3bsecret API_TOKEN hidden by gemdeck\uff3d", True),
        ("&#91;secret API_TOKEN hidden by gemdeck&#93;", True),
        ("[secret OTHER_TOKEN hidden by gemdeck]", False),
        ("a secret is hidden by gemdeck", False),
        ("*** and API_TOKEN", False),
        ("[secret API_TOKEN]", False),
    ],
)
def test_D21_a_mask_is_known_however_a_model_rewrites_it(text: str, *, is_mask: bool) -> None:
    redactor, mask = Redactor(), mask_of("API_TOKEN")
    redactor.know_masks(["API_TOKEN", "TOKEN"])
    value = text.replace("{}", mask)
    for arguments in ({"a": [value]}, {value: 1}, {"a": json.dumps({"b": value})}):
        assert redactor.mask_in(arguments) == (mask if is_mask else "")


def read(message: object, *, ascii_only: bool = True) -> Any:  # noqa: ANN401 - any JSON
    """Read a message from a server whose secret is `SECRET`."""
    own = Redactor()
    own.register(SECRET, mask=HIDES)
    line = json.dumps(message, ensure_ascii=ascii_only).encode()
    made = decode(line, secrets=own).message
    assert made is not None
    return made if isinstance(made, str) else made.model_dump(by_alias=True, exclude_unset=True)


def test_D21_ids_cursors_and_the_protocols_own_names_stay() -> None:
    result = {"nextCursor": SECRET, "requestState": SECRET, "structuredContent": {SECRET: SECRET}}
    answer = {"jsonrpc": "2.0", "id": SECRET, "result": {**result, "instructions": SECRET}}
    got = read(answer)
    assert got["id"] == SECRET
    hidden = {"structuredContent": {HIDES: HIDES}, "instructions": HIDES}
    assert got["result"] == {**result, **hidden}
    tasks = {"task": {"taskId": SECRET}, "tasks": [{"taskId": SECRET}]}
    inputs = {"taskId": SECRET, "inputRequests": {SECRET: {"message": SECRET}}}
    passed = read({"jsonrpc": "2.0", "id": 1, "result": {**tasks, **inputs, "id": SECRET}})
    inputs["inputRequests"] = {SECRET: {"message": HIDES}}
    assert passed["result"] == {**tasks, **inputs, "id": HIDES}
    plain = {"jsonrpc": "2.0", "id": 1, "result": {"text": "nothing %5B \\ \u00e4"}}
    assert read(plain) == plain


@pytest.mark.parametrize(
    "form",
    [
        *(SECRET, json.dumps(SECRET), json.dumps(json.dumps(SECRET)), repr(SECRET)),
        *(json.dumps(SECRET, ensure_ascii=False), quote(SECRET), quote(SECRET, safe="")),
        *(base64.b64encode(f"{before}{SECRET}".encode()).decode() for before in ("", "a", "ab")),
        "".join(f"\\u{ord(letter):04x}" for letter in SECRET),
        SECRET.replace("/", "\\/"),
        "".join(f"%{byte:02X}" for byte in SECRET.encode()),
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_D21_every_form_of_a_secret_is_masked(form: str, *, ascii_only: bool) -> None:
    result = {"content": [{"type": "text", "text": f"it is {form}."}]}
    got = read({"jsonrpc": "2.0", "id": 1, "result": result}, ascii_only=ascii_only)
    assert spoken(got) == []
    assert HIDES in got["result"]["content"][0]["text"]


@pytest.mark.parametrize("between", ["\x1b[0m", "\x9b0m", "\x1b]0;x\x1b\\", "\xad", "\x1b7"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_D21_a_secret_that_a_screen_would_put_together_is_masked(
    between: str, *, ascii_only: bool
) -> None:
    """In a message in which no run of its letters stands as a whole."""
    own = Redactor()
    own.register("Zq7kR9tYw3mX", mask=HIDES)
    text = f"it is Zq7kR{between}9tYw3mX"
    message = {"jsonrpc": "2.0", "id": 1, "result": {"a": ["\x1b]", text]}}
    got = decode(json.dumps(message, ensure_ascii=ascii_only).encode(), secrets=own).message
    assert isinstance(got, JSONRPCResponse)
    assert got.result == {"a": ["\x1b]", HIDES]}


class Watched(Redactor):
    """Notes the threads in which it masks messages."""

    threads: ClassVar[list[int]] = []

    def redact_message(self, message: object, line: bytes) -> tuple[Any, int]:
        self.threads.append(threading.get_ident())
        return super().redact_message(message, line)


async def test_D21_what_may_hide_a_secret_is_searched_together_and_beside_the_loop() -> None:
    own = Watched()
    own.register("Zq7kR9tYw3mX", mask=HIDES)
    texts = [f"%4{number % 10}{number}" for number in range(3_000)]
    for said in (texts, [*texts, "Zq7kR9tYw3mX"]):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"a": said}}).encode()
        found = await read_line(line, secrets=own)
        assert len(line) < MAX_ON_LOOP * 2
        assert 0 < found.searched < 12 * len(line)
    assert threading.get_ident() not in own.threads


async def test_D21_the_search_is_charged() -> None:
    clock, texts = Time(), [f"%4{number % 10}{number}" for number in range(1_500)]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"a": texts}}).encode()
    log = ServerLog(ServerId("s"), Watcher())
    flow = FlowControl(log, clock, clock.sleep)
    for _ in range(250):
        await flow.take(line)
    assert clock.slept == 0
    log.learn([("TOKEN", "Zq7kR9tYw3mX")])
    for _ in range(250):
        await flow.take(line)
    assert clock.slept > 0


def test_D21_a_text_too_large_to_be_searched_is_left_out_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redaction, "PIECE", 1_000)
    monkeypatch.setattr(redaction, "MAX_JUDGED", 20_000)
    own = Redactor()
    own.register("Zq7kR9tYw3mX", mask=HIDES)
    hidden = "".join(f"%{ord(letter):02X}" for letter in "Zq7kR9tYw3mX")
    texts = [f"plain {'x' * 30_000}", f"{'%41' * 3_000}{hidden}%41", "%41" * 10_000]
    message = {"jsonrpc": "2.0", "id": 1, "result": {"a": texts}}
    got, _ = own.redact_message(message, json.dumps(message).encode())
    assert got["result"] == {"a": [texts[0], HIDES, redaction.LEFT_OUT]}


def test_D21_a_secret_in_data_that_is_broken_up_is_masked_before_it_is_read() -> None:
    redactor = Redactor()
    redactor.register(SECRET, mask=HIDES)
    for before in range(3):
        data = base64.b64encode(b"<svg>"[before:] + SECRET.encode()).decode()
        for written in (
            "\n".join(data[at : at + 8] for at in range(0, 400, 8)),
            data.rstrip("=") + "\r\n",
        ):
            for kind in ("image/svg+xml", "text/plain"):
                block = {"type": "image", "data": written, "mimeType": kind}
                message = {"jsonrpc": "2.0", "id": 1, "result": {"content": [block], "x": SECRET}}
                got = decode(json.dumps(message).encode(), secrets=redactor).message
                assert isinstance(got, JSONRPCResponse)
                assert spoken(convert_result(read_call_result(got.result))) == []
    own = {SECRET: 1, "a": SECRET.encode().hex(), "b": f"0x{SECRET.encode().hex().upper()}"}
    message = {"jsonrpc": "2.0", "id": 1, "result": own}
    got = decode(json.dumps(message).encode(), secrets=redactor).message
    assert isinstance(got, JSONRPCResponse)
    said = str(convert_result(read_call_result(got.result, redactor.redact_json)))
    assert spoken(said) == []
    assert SECRET.encode().hex() not in said.lower()


def test_D21_of_a_key_only_the_lines_that_are_secret_are_masked() -> None:
    own = Redactor()
    own.register("-----BEGIN PRIVATE KEY-----\nMIIEvQ1BADAN\n-----END PRIVATE KEY-----")
    text = "-----BEGIN PRIVATE KEY-----"
    assert own.redact_known(f"{text} and MIIEvQ1BADAN") == f"{text} and ***"


def test_D21_a_header_is_a_secret_whatever_other_names_are_like_it() -> None:
    headers = {"authorization": f"Bearer {PLAIN}", "url": PLAIN}
    given = [*define("http://h", headers=headers, env={"url": "x"}).given({})]
    assert {*headers.items()} <= {*given}


@pytest.mark.writes_secrets("sign-ins.json")
async def test_D21_the_token_of_a_sign_in_and_what_belongs_to_it_is_masked(tmp_path: Path) -> None:
    mask = mask_of("authorization")
    async with guarded() as server, signing_in(server.url, Person(), tmp_path) as one:
        await one.connect()
        record = await token_session(one.sign_ins, one.definition).record()
        assert record is not None
        for secret in record.secrets():
            result = await call(one.manager, "echo", {"text": f"it is {secret}"})
            assert (result.display, str(result.raw).count(mask)) == (f"it is {mask}", 1)
        assert len(record.secrets()) > 1


@pytest.mark.parametrize(
    ("name", "value"), [("Authorization", f"Bearer {PLAIN}"), ("X-Who", PLAIN)]
)
async def test_D21_a_header_that_a_program_prints_is_masked(name: str, value: str) -> None:
    script = "import json, sys; print(json.dumps({sys.argv[1]: sys.argv[2]}))"
    args = ("-I", "-S", "-c", script, name, value)
    async with (
        RawServer() as server,
        connected(server.url, command=sys.executable, args=args) as (manager, _),
    ):
        assert server.requests[-1].headers[name.lower()] == value
        result = await call(manager, "echo", {"text": f"it is {PLAIN}"})
        assert result.display == f"it is {mask_of('authorization')}"


async def test_D21_an_address_that_a_server_leads_to_is_masked() -> None:
    away = answer(307, location=f"http://elsewhere.example/{PLAIN}")
    async with (
        RawServer(on={"tools/call": away}) as server,
        connected(server.url, headers={"X-Key": PLAIN}) as (manager, watcher),
    ):
        with pytest.raises(ToolCallError, match="redirects to") as refused:
            await call(manager, "echo", {"text": "hi"})
        assert spoken([refused.value, *watcher.events]) == []


async def test_D21_a_secret_that_is_let_through_to_a_server_is_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARROT_TOKEN", SECRET)
    rules = Inheritance(allow=frozenset({"PARROT_TOKEN"}))
    await check(script("parrot", inheritance=rules), HIDES)


def test_D21_what_is_no_text_any_more_is_left_out_with_a_word() -> None:
    encoded = base64.b64encode(f"a picture of {SECRET}".encode()).decode()
    block = {"type": "image", "data": encoded, "mimeType": "image/png"}
    got = read({"jsonrpc": "2.0", "id": 1, "result": {"content": [block]}})
    result = convert_result(read_call_result(got["result"]))
    assert [part.text for part in result.parts if isinstance(part, TextPart)][1:] == [
        "[The data is left out: it contains a secret of this server.]"
    ]
    assert "it contains a secret" in result.display
    assert result.pictures == ()
