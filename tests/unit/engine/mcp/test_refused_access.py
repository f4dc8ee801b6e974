"""What a server's words claim of its sandbox, and what is offered then."""

from dataclasses import replace

import pytest

from tests.conftest import World
from tests.support.definitions import define_server
from tests.support.samples import server_view
from tests.unit.engine.mcp.support import call, ready, script
from tui.cli.servers.server_words import server_row, server_value
from tui.engine.definitions.definition import Launch, Sandbox
from tui.engine.mcp.catalog.offered_tool import ToolCallError
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.refused_access import MAX_SIGNS, Claim, claims_in, refused_access
from tui.engine.mcp.transports.stdio.sandbox import Sandboxes
from tui.model.servers import (
    AccessRefused,
    Failure,
    RefusedAccess,
    SandboxView,
    ServerId,
    ServerStatus,
)

X = "/srv/my data/x"
READONLY, DENIED = Claim("readonly", X, writes=True), Claim("denied", X)
MISSING, NETWORK = Claim("missing", X), Claim("network")


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        ("Error: EROFS: read-only file system, open '/srv/my data/x'\n    at async open", READONLY),
        ("EROFS: read-only file system, rename '/srv/my data/x' -> '/srv/y'", READONLY),
        ("{ errno: -13, code: 'EACCES' } EACCES: permission denied, open '/srv/my data/x'", DENIED),
        ("EPERM: operation not permitted, scandir '/srv/my data/x'", DENIED),
        ("Error: ENOENT: no such file or directory, stat '/srv/my data/x'", MISSING),
        (
            "ENOENT: no such file or directory, mkdir '/srv/my data/x'",
            Claim("missing", X, writes=True),
        ),
        ("OSError: [Errno 30] Read-only file system: '/srv/my data/x'", READONLY),
        ('PermissionError: [Errno 13] Permission denied: "/srv/my data/x"', DENIED),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/srv/my data/x'", MISSING),
        ("2026/01/02 03:04:05 open /srv/my data/x: permission denied", DENIED),
        ("panic: open store: mkdir /srv/my data/x: read-only file system", READONLY),
        ("error: failed to open file `/srv/my data/x`: Permission denied (os error 13)", DENIED),
        ("Failed to open `/srv/my data/x`\n\nCaused by:\n  0: x (os error 30)", READONLY),
        (
            "mkdir: cannot create directory \u2018/srv/my data/x\u2019: Read-only file system",
            READONLY,
        ),
        ("bash: line 1: /srv/my data/x: Permission denied", DENIED),
        ("java.io.IOException: /srv/my data/x (Read-only file system)", READONLY),
        ("Errno::EROFS: Read-only file system @ rb_sysopen - /srv/x", "/srv/x"),
        ("npm error code EROFS\nnpm error rofs EROFS: x, mkdir '/srv/my data/x'", READONLY),
        ('{"error": "EACCES: permission denied, open \\"/srv/my data/x\\""}', DENIED),
        ("Error: getaddrinfo EAI_AGAIN api.example.com", NETWORK),
        ("connect ENETUNREACH 192.0.2.1:443 - Local (0.0.0.0:0)", NETWORK),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", NETWORK),
        ("[Errno 101] Network is unreachable", NETWORK),
        ("dial tcp: lookup api.example.com: no such host", NETWORK),
        ("error trying to connect: dns error: failed to lookup address information", NETWORK),
        ("curl: (6) Could not resolve host: api.example.com", NETWORK),
        ("[Errno 30] Read-only file system: 'notes.db'", None),
        ("Permission denied (publickey).", None),
        ("All files in /srv/my data/x are fine.", None),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_what_is_refused_is_read_from_what_programs_write(
    words: str, claim: Claim | str | None
) -> None:
    found = next(claims_in(words), None)
    assert (found.path if isinstance(claim, str) and found else found) == claim


def test_a_long_text_is_read_in_parts() -> None:
    assert [*claims_in("EROFS '/srv/x" * 1_000_000)] == []
    assert len([*claims_in("open '/srv/x': EROFS\n" * 100_000)]) <= MAX_SIGNS


@pytest.mark.parametrize(
    ("claim", "entry"),
    [
        ("missing {home}/notes/a b.txt", '"read": ["~/notes/a b.txt"]'),
        ("missing {home}/notes/new.txt", '"write": ["~/notes"]'),
        ("missing {home}/notes/no/new.txt", None),
        ("missing {home}/no.txt", None),
        ("denied {home}/notes", '"read": ["~/notes"]'),
        ("readonly {home}/notes", '"write": ["~/notes"]'),
        ("readonly {home}/linked/a b.txt", '"write": ["~/notes/a b.txt"]'),
        ("network ", '"network": true'),
        ("denied {home}/given/x", None),
        ("readonly {home}/given/x", None),
        ("missing {home}/seen/x", None),
        ("readonly {home}/seen", '"write": ["~/seen"]'),
        ("missing {folder}/x", None),
        ("readonly {folder}/.git/config", ""),
        ("missing /usr/lib/no", None),
        ("readonly /usr/no", ""),
        ("readonly /", ""),
        ("readonly /tmp", ""),
        ("denied {home}", ""),
        ("denied {home}/..", ""),
        ("denied {home}/.ssh/id", ""),
        ("readonly {home}/.ssh", ""),
        ("denied {home}/keys", ""),
        ("denied {home}/.local", ""),
        ("readonly {home}/.bashrc", ""),
        ("denied {home}/.gnupg", ""),
        ("denied {home}/.local/share/keyrings", ""),
        ("denied {state}/grants.json", ""),
        ("readonly {home}/theirs/x", ""),
        ("readonly {home}/their cwd", ""),
        ("denied {home}/notes/$HOME", ""),
        ("denied {home}/notes/\u202ex", ""),
    ],
)
def test_only_what_a_sandbox_may_get_is_offered(
    claim: str, entry: str | None, world: World
) -> None:
    home, folder = world.home, world.home / "work"
    for name in (
        "notes/a b.txt",
        "notes/$HOME",
        "notes/\u202ex",
        "given/x",
        "seen/y",
        "work/.git/c",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("", "utf-8")
    world.state.mkdir()
    for name in (".ssh", ".gnupg", ".local/share/keyrings", "theirs", "their cwd"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / "linked").symlink_to("notes")
    (home / "keys").symlink_to(".ssh")
    box = Sandbox((home / "seen",), (home / "given",))
    one = replace(define_server("one"), launch=Launch(sandbox=box))
    other = Launch(cwd=home / "their cwd", sandbox=Sandbox(write=(home / "theirs",)))
    context = ClientContext(workspaces=(folder,), sandboxes=Sandboxes(home, world.state))
    kind, _, path = claim.partition(" ")
    claims = [
        Claim(kind, path.format(home=home, folder=folder, state=world.state), kind == "readonly")
    ]
    found = refused_access(
        claims, one, (one, replace(define_server("other"), launch=other)), context
    )
    assert entry == (found and (found.entry if found.is_offered else ""))


@pytest.mark.usefixtures("sandboxes")
async def test_a_failed_call_tells_the_user_what_would_allow_it(world: World) -> None:
    notes, entry = world.home / "notes", 'To allow it: "write": ["~/notes"]'
    notes.mkdir()
    words = f"EROFS: read-only file system, open '{notes}'"
    async with ready(script("parrot", words, sandbox=Sandbox())) as (manager, watcher):
        result = await call(manager, "fail")
        assert result.display.endswith(entry)
        assert entry not in str(result.parts), "the model gets what the server wrote"
        with pytest.raises(ToolCallError, match="read-only") as caught:
            await call(manager, "break")
        assert caught.value.advice.endswith(entry)
        assert watcher.of(AccessRefused) == [
            AccessRefused(ServerId("parrot"), RefusedAccess("write", "~/notes"))
        ]
    async with ready(script("parrot", words)) as (manager, _):
        assert entry not in (await call(manager, "fail")).display, "it runs in no sandbox"


def test_what_a_sandbox_allows_is_in_lists_and_pages() -> None:
    view = replace(server_view(), sandbox=SandboxView(("~/a",)), refused=RefusedAccess("network"))
    box = {"read": ("~/a",), "write": (), "network": False}
    assert server_value(view)["sandbox"] == box
    assert server_value(server_view())["sandbox"] is None
    assert server_row(view, "")[-1] == "sandboxed: no network; reads ~/a"
    failed = replace(view, status=ServerStatus.FAILED, failure=Failure("It ended.", "Mend it."))
    assert server_value(failed)["advice"].endswith('To allow it: "network": true Mend it.')
