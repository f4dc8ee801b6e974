"""What a server's words claim of its sandbox, and what is offered then."""

import pytest

from tui.engine.mcp.refused_access import Claim, claims_in

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
