import errno
import os
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.support.definitions import altered, define_server
from tests.support.rows import row
from tui.engine.definitions.definition import Inheritance
from tui.engine.mcp.context import ClientContext
from tui.engine.mcp.errors import ServerError
from tui.engine.mcp.server_log import ServerLog
from tui.engine.mcp.transports.stdio import launch
from tui.engine.mcp.transports.stdio.start_errors import not_started
from tui.engine.mcp.transports.stdio.zygote import Zygote
from tui.model.servers import Origin, ServerId, Transport


def program(path: Path, mode: int = 0o755) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


SECRET_SHAPES = {
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
    "key": "-----BEGIN PRIVATE KEY-----",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIB",
    "address": "https://ann:hunter22@host.example/x",
    "database": "postgres://:hunter22@host.example/x",
    "GitHub": "ghp_" + "a1" * 18,
    "GitHub, fine-grained": "github_pat_" + "a1" * 18,
    "Google": "AIzaSy" + "a" * 33,
    "Amazon": "AKIA" + "A" * 16,
    "JWT": "eyJhbGciOi.eyJzdWIi.c2ln",
    "Stripe": "sk_live_" + "a1" * 12,
    "Slack": "xoxb-1-2",
}

_PASSED = """
    HOME LANG PATH USER TERM SHELL LOGNAME LC_ALL TMPDIR TEMP TMP COLORTERM DISPLAY EDITOR PWD
    XDG_CONFIG_HOME XDG_RUNTIME_DIR KUBECONFIG AWS_PROFILE AWS_REGION DOCKER_HOST DOCKER_CONFIG
    JAVA_HOME GOPATH NVM_DIR VIRTUAL_ENV PYTHONPATH NODE_OPTIONS NODE_ENV DEBUG CI PORT
    SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSH_AUTH_SOCK
    XAUTHORITY AWS_DEFAULT_REGION GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY http_proxy https_proxy all_proxy no_proxy
    GEMINI_CLI_IDE_SERVER_PORT GEMINI_CLI_AUTH GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0
    GITHUB_SHA SURFACE GITHUB_ENV REPOSITORY ISSUE_TITLE GEMINI_MODEL PATTERN MY_PATH
"""

_WITHHELD = """
    MY_TOKEN token GITHUB_TOKEN CLIENT_SECRET PASSWORD PGPASSWORD MYSQL_PASSWD API_KEY KEYRING
    AUTHORIZATION GOOGLE_APPLICATION_CREDENTIALS AWS_CREDS MY_PRIVATE_DATA TLS_CERT GPG_PASSPHRASE
    SENTRY_DSN DSN MY_COOKIE COOKIEJAR SESSION AWS_SESSION XDG_SESSION_ID GITHUB_PAT _PAT
    GEMDECK_HOME GEMDECK_ANYTHING GEMINI_API_KEY GOOGLE_API_KEY CLIENT_ID DB_URI CONNECTION_STRING
    AZURE_CLIENT_ID AZURE_TENANT_ID SLACK_WEBHOOK_URL TWILIO_ACCOUNT_SID DATABASE_URL
    GOOGLE_CLOUD_ACCOUNT FIREBASE_PROJECT_ID
"""

SERVER = define_server(ServerId("s"), Origin.USER, Transport.STDIO)
PASSED, WITHHELD = _PASSED.split(), _WITHHELD.split()
SMALL = ["HOME", "LANG", "PATH", "USER", "TERM", "SHELL", "LOGNAME", "LC_ALL"]


def gets(name: str, value: str = "/v", *, origin: Origin = Origin.USER, **lists: set[str]) -> bool:
    """Tell whether a server inherits a variable."""
    inheritance = Inheritance(**{key: frozenset(names) for key, names in lists.items()})
    server = altered(SERVER, origin=origin, inheritance=inheritance)
    return name in launch.server_environment(server, {name: value})


def test_the_users_server_inherits_what_is_no_secret_by_its_name() -> None:
    for name in (*PASSED, *WITHHELD):
        is_allowed = {name.upper()}
        assert gets(name) is (name in PASSED), name
        assert gets(name, allow=is_allowed), name
        assert not gets(name, block=is_allowed), f"{name} is blocked and never passes"
        assert not gets(name, block=is_allowed, allow=is_allowed), name


def test_a_projects_server_inherits_the_small_set_and_what_the_user_allows() -> None:
    for name in (*PASSED, *WITHHELD):
        assert gets(name, origin=Origin.PROJECT) is (name in SMALL), name
        assert gets(name, origin=Origin.PROJECT, allow={name.upper()}), name
        assert not gets(name, SECRET_SHAPES["GitHub"], origin=Origin.PROJECT), name


@pytest.mark.parametrize("kind", SECRET_SHAPES)
def test_a_value_that_looks_like_a_secret_is_not_inherited_under_any_name(kind: str) -> None:
    for name in ("PLAIN", "GIT_CONFIG_VALUE_0", "SSL_CERT_FILE"):
        assert not gets(name, SECRET_SHAPES[kind])
        assert not gets(name, f"see {SECRET_SHAPES[kind]}", allow={name})
    assert gets("GEMINI_CLI_X", SECRET_SHAPES[kind])


def test_a_proxy_with_a_password_passes_only_where_it_is_named() -> None:
    plain = "http://proxy:3128 proxy:3128 http://ann@proxy:3128 socks5://[::1]:1080 localhost,.test"
    secret = """
        http://ann:hunter22@proxy:3128 http://ann:hunter/22@proxy:3128 http://:hunter22@proxy
        ann:hunter22@proxy:3128 ann:hunter/22@proxy:3128
    """
    for name, value in product(("HTTPS_PROXY", "http_proxy"), (*plain.split(), *secret.split())):
        assert gets(name, value) is (value in plain.split()), value
        assert gets(name, value, allow={name.upper()}), value


def test_a_shell_function_is_not_inherited() -> None:
    assert not gets("USER", "() { :; }; evil")


def test_the_variables_of_the_entry_win_and_are_not_judged() -> None:
    server = altered(SERVER, env={"API_KEY": "k", "HOME": "/other"})
    environ = {"HOME": "/h", "PATH": "/bin", "API_KEY": "theirs", "MY_TOKEN": "t"}
    given = launch.server_environment(server, environ)
    assert given == {"API_KEY": "k", "HOME": "/other", "PATH": "/bin"}
    names = launch.environment_names(server, {**environ, "A\x1b[2JB": "x"})
    assert names == (("AB", "API_KEY", "HOME", "PATH"), ("MY_TOKEN",), ())


def test_a_program_is_looked_up_in_the_servers_own_path_or_folder(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool")
    named, placed = (altered(SERVER, command=command) for command in ("tool", "./tool"))
    assert launch.own_program(named, {"PATH": str(tmp_path)}, Path("/")) == str(tool)
    assert launch.own_program(placed, {"PATH": ""}, tmp_path) == str(tool)


def test_a_program_that_cannot_run_is_explained(tmp_path: Path) -> None:
    program(tmp_path / "plain", 0o644)
    program(tmp_path / "a;b", 0o644)
    program(tmp_path / "tool")
    (tmp_path / "folder").mkdir()
    for command, reason, advice in [
        ("missing-program", "command not found", "Install it"),
        ("./missing", "command not found", "Install it"),
        ("./missing now", "command not found", "Install it"),
        ("./plain", "its command is not executable", "chmod +x ./plain"),
        ("./a;b", "its command is not executable", "chmod +x './a;b'"),
        ("./folder", "its command is a folder", "Install it"),
        ("sh -c true", "command not found", "arguments into `args`"),
        ("./tool --now", "command not found", "arguments into `args`"),
        ('"/bin/sh" -c true', "command not found", "Remove the quotes"),
        ("'sh'", "command not found", "Remove the quotes"),
        ("/bin/sh ", "command not found", "Remove the blanks around it"),
        ("~/bin/tool", "command not found", "the full path: ~ is not expanded"),
        ("C:\\nodejs\\npx.cmd", "command not found", "a Windows command"),
        *((name, "command not found", "a Windows command") for name in ("npx.CMD", "cmd", "x.exe")),
        ("x\0y", "command not found", "Install it"),
        ("x" * 5_000, "command not found", "Install it"),
    ]:
        server = altered(SERVER, command=command)
        with row(command), pytest.raises(ServerError) as caught:
            launch.own_program(server, {"PATH": str(tmp_path)}, tmp_path)
        assert caught.value.reason == f"{reason}: {command}"
        assert advice in caught.value.advice
        assert caught.value.permanent


async def test_a_program_that_the_system_does_not_start_is_explained(
    tmp_path: Path, zygote: Zygote
) -> None:
    context = ClientContext(workspaces=(tmp_path,), zygote=zygote)
    file = program(tmp_path / "tool")
    server = altered(SERVER, command=str(file), cwd=tmp_path)
    for head, reason in [
        (b"#!/usr/bin/no-\x1b[31mpython -u\n", "line does not exist: /usr/bin/no-python -u"),
        (b"#!/bin/sh\r\necho\r\n", "its #! line has a Windows line ending (CR)"),
        (b"#!" + b"x" * 5_000, "the interpreter in its #! line does not exist: xxx"),
        (b"MZ\x90\0 a program of Windows", "it is not a program for this machine"),
        (b"", "it is not a program for this machine"),
    ]:
        file.write_bytes(head)
        log = ServerLog(server.id, context.publish)
        with row(head), pytest.raises(ServerError) as caught:
            async with launch.running_server(server, log, context, lambda: False):
                pass
        assert reason in caught.value.reason
        assert caught.value.permanent
        assert len(caught.value.reason) < 400
        assert "\x1b" not in caught.value.reason


def test_another_error_of_a_start_stays_as_it_is(tmp_path: Path) -> None:
    for words in ("could not be started: Permission denied", "could not be started: x"):
        error = ServerError(words)
        assert not_started(str(program(tmp_path / "tool")), error) is error
    gone = ServerError(f"could not be started: {os.strerror(errno.ENOENT)}")
    assert not_started(str(tmp_path / "gone"), gone) is gone


def test_a_folder_that_does_not_exist_is_explained(tmp_path: Path) -> None:
    assert launch.place_of(tmp_path)
    with pytest.raises(ServerError, match="its working directory does not exist"):
        launch.place_of(tmp_path / "gone")


def test_the_users_program_is_the_one_that_its_grants_are_for(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    path = {"PATH": f"{first}:{second}"}
    known = program(second / "tool")
    server = altered(SERVER, command="tool", program=str(known))
    other = program(first / "tool")
    assert launch.own_program(server, path, tmp_path) == str(known)
    known.unlink()
    with pytest.raises(ServerError, match=f" to {other}"):
        launch.own_program(server, path, tmp_path)
    assert launch.own_program(altered(server, program=""), path, tmp_path) == str(other)


async def test_no_start_reads_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, threading.Thread] = {}

    def observed(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def observe(*args: object) -> object:
            threads[name] = threading.current_thread()
            return function(*args)

        return observe

    for name in ("place_of", "own_program", "server_environment"):
        monkeypatch.setattr(launch, name, observed(name, getattr(launch, name)))
    server = altered(SERVER, command="no-such-tool")
    context = ClientContext(workspaces=(tmp_path,))
    log = ServerLog(server.id, context.publish)
    with pytest.raises(ServerError, match="command not found: no-such-tool"):
        async with launch.running_server(server, log, context, lambda: False):
            pass
    assert len(threads) == 3
    assert threading.current_thread() not in threads.values()
