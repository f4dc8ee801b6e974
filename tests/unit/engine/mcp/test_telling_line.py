"""Of what programs write before they end, the line that says why."""

import pytest

from tui.engine.mcp.telling_line import MAX_LINE, telling_line

ENDS = {
    "node": (
        "node:internal/modules/cjs/loader:1228\n"
        "  throw err;\n"
        "  ^\n"
        "\n"
        "Error: Cannot find module '/x/y.js'\n"
        "    at Module._resolveFilename (node:internal)\n"
        "    at node:internal/main/run_main_module:28:49 {\n"
        "  code: 'MODULE_NOT_FOUND',\n"
        "  requireStack: []\n"
        "}\n"
        "\n"
        "Node.js v20.11.0",
        "Cannot find module",
    ),
    "nodesyntax": (
        "/x/a.js:3\n"
        "foo(\n"
        "    ^\n"
        "\n"
        "SyntaxError: missing ) after argument list\n"
        "    at wrapSafe (node:internal)\n"
        "\n"
        "Node.js v20",
        "SyntaxError",
    ),
    "nodetypeerr": (
        "file:///x/i.js:10\n"
        "    throw new TypeError('x');\n"
        "          ^\n"
        "\n"
        'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be\n'
        "    at a",
        "ERR_INVALID",
    ),
    "python": (
        "Traceback (most recent call last):\n"
        '  File "/x/s.py", line 3, in <module>\n'
        "    import foo\n"
        "ModuleNotFoundError: No module named 'foo'",
        "No module named",
    ),
    "pychain": (
        "Traceback (most recent call last):\n"
        '  File "a"\n'
        "KeyError: 'X'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "b"\n'
        "RuntimeError: set API_KEY",
        "set API_KEY",
    ),
    "pydotted": (
        '  File "b"\n'
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\n"
        "api_key\n"
        "  Field required [type=missing]",
        "ValidationError: 1 validation",
    ),
    "npm404": (
        "npm error code E404\n"
        "npm error 404 Not Found - GET https://r/nothere - Not found\n"
        "npm error 404\n"
        "npm error 404  'nothere@*' is not in this registry.\n"
        "npm error A complete log of this run can be found in: /x",
        "Not Found - GET",
    ),
    "npmold": (
        "npm ERR! code ENOENT\n"
        "npm ERR! syscall open\n"
        "npm ERR! path /x/package.json\n"
        "npm ERR! errno -2\n"
        "npm ERR! enoent ENOENT: no such file or directory, open '/x/package.json'\n"
        "npm ERR! A complete log",
        "enoent ENOENT",
    ),
    "npmexec": (
        "npm error could not determine executable to run\n"
        "npm error A complete log of this run can be found in: /root/.npm/x",
        "could not determine",
    ),
    "uv": (
        "  × No solution found when resolving tool dependencies:\n"
        "  ╰─▶ Because nothere was not found in the package registry and you require\n"
        "      nothere, we can conclude",
        "nothere was not found",
    ),
    "uverr": (
        "error: Failed to spawn: `mcp-x`\n  Caused by: No such file or directory (os error 2)",
        "Failed to spawn",
    ),
    "go": (
        "panic: runtime error: index out of range [0] with length 0\n"
        "\n"
        "goroutine 1 [running]:\n"
        "main.main()\n"
        "\t/x/main.go:5 +0x1d\n"
        "exit status 2",
        "index out of range",
    ),
    "golog": (
        "2024/05/01 10:00:00 missing GITHUB_TOKEN\nexit status 1",
        "missing GITHUB_TOKEN",
    ),
    "rust": (
        "thread 'main' panicked at src/main.rs:4:10:\n"
        "called `Option::unwrap()` on a `None` value\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        "Option::unwrap",
    ),
    "java": (
        'Exception in thread "main" java.lang.IllegalStateException: no key\n'
        "\tat a.b.C(C.java:3)\n"
        "Caused by: java.io.IOException: gone\n"
        "\t... 3 more",
        "gone",
    ),
    "javaclass": (
        "Error: Unable to access jarfile x.jar",
        "Unable to access jarfile",
    ),
    "docker": (
        "Unable to find image 'nope/none:latest' locally\n"
        "docker: Error response from daemon: pull access denied for nope/none, repository does not exist.\n"
        "See 'docker run --help'.",
        "pull access denied",
    ),
    "dockerd": (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?.\n"
        "See 'docker run --help'.",
        "Cannot connect",
    ),
    "sh": (
        "sh: 1: nothere: not found",
        "nothere: not found",
    ),
    "bash": (
        "/x/run.sh: line 3: uvx: command not found",
        "uvx: command not found",
    ),
    "env": (
        "env: node: No such file or directory",
        "env: node",
    ),
    "usage": (
        "usage: server [-h] --root ROOT\n"
        "server: error: the following arguments are required: --root",
        "following arguments are required",
    ),
    "log": (
        "2024-01-01 INFO starting\n2024-01-01 ERROR could not bind port 80\n2024-01-01 INFO bye",
        "could not bind",
    ),
    "deno": (
        'error: Module not found "file:///x/main.ts".',
        "Module not found",
    ),
    "bun": (
        "1 | import x from 'nope'\n"
        "                  ^\n"
        "error: Cannot find package 'nope' from '/x/i.ts'\n"
        "\n"
        "Bun v1.1.0 (Linux x64)",
        "Cannot find package",
    ),
    "tsnode": (
        "/x/node_modules/ts-node/src/index.ts:859\n"
        "    return new TSError(diagnosticText);\n"
        "           ^\n"
        "TSError: ⨯ Unable to compile TypeScript:\n"
        "src/i.ts(3,1): error TS2304: Cannot find name 'foo'.",
        "error TS2304",
    ),
    "esm": (
        '(node:1) Warning: To load an ES module, set "type": "module"\n'
        "/x/i.js:1\n"
        "import x from 'y'\n"
        "^^^^^^\n"
        "\n"
        "SyntaxError: Cannot use import statement outside a module\n"
        "    at wrapSafe",
        "import statement outside",
    ),
    "nodeenv": (
        "node:internal/process/promises:288\n"
        "            triggerUncaughtException(err);\n"
        "            ^\n"
        "\n"
        "[UnhandledPromiseRejection: This error originated either by throwing]\n"
        "\n"
        "Error: connect ECONNREFUSED 127.0.0.1:5432\n"
        "    at TCPConnectWrap.afterConnect\n"
        "\n"
        "Node.js v18.0.0",
        "ECONNREFUSED",
    ),
    "npx": (
        "npm warn exec The following package was not found\n"
        "npm error code EUNSUPPORTEDPROTOCOL\n"
        'npm error Unsupported URL Type "workspace:": workspace:*',
        "Unsupported URL Type",
    ),
    "npmperm": (
        "npm error code EACCES\n"
        "npm error syscall mkdir\n"
        "npm error path /root/.npm\n"
        "npm error errno -13\n"
        "npm error Error: EACCES: permission denied, mkdir '/root/.npm'\n"
        "npm error     at async mkdir",
        "EACCES: permission denied",
    ),
    "pip": (
        "ERROR: Could not find a version that satisfies the requirement nothere\n"
        "ERROR: No matching distribution found for nothere\n"
        "[notice] A new release of pip is available",
        "No matching distribution",
    ),
    "pyattr": (
        "Traceback (most recent call last):\n"
        '  File "/x", line 1, in <module>\n'
        "AttributeError: module 'a' has no attribute 'b'. Did you mean: 'c'?",
        "AttributeError",
    ),
    "pyexit": (
        "Traceback (most recent call last):\n"
        '  File "/x", line 1\n'
        "SystemExit: DATABASE_URL is not set",
        "DATABASE_URL",
    ),
    "pyindent": (
        "  File \"/x/s.py\", line 3\n    foo(\n       ^\nSyntaxError: '(' was never closed",
        "never closed",
    ),
    "pygroup": (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "x"\n'
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "y"\n'
        "    | OSError: [Errno 98] address already in use\n"
        "    +------------------------------------",
        "address already in use",
    ),
    "pythonm": (
        "/usr/bin/python3: No module named mcp_server_git",
        "No module named mcp_server_git",
    ),
    "pycannot": (
        "python: can't open file '/x/nope.py': [Errno 2] No such file or directory",
        "can't open file",
    ),
    "uvxnf": (
        "error: Failed to resolve `--with` requirement\n  Caused by: Git operation failed",
        "Failed to resolve",
    ),
    "gofatal": (
        "2024/05/01 10:00:00 FATAL failed to read config: open x.yaml: no such file or directory",
        "failed to read config",
    ),
    "rustlog": (
        'Error: Os { code: 2, kind: NotFound, message: "No such file or directory" }',
        "kind: NotFound",
    ),
    "javaversion": (
        "Error: LinkageError occurred while loading main class X\n"
        "\tjava.lang.UnsupportedClassVersionError: X has been compiled by a more recent version of the Java Runtime (class file version 65.0)",
        "more recent version",
    ),
    "dotnet": (
        "Unhandled exception. System.IO.FileNotFoundException: Could not load file or assembly 'X'\n"
        "   at Program.Main()",
        "Could not load file",
    ),
    "ruby": (
        "/x/s.rb:1:in `require': cannot load such file -- mcp (LoadError)\n"
        "\tfrom /x/s.rb:1:in `<main>'",
        "cannot load such file",
    ),
    "php": (
        'PHP Fatal error:  Uncaught Error: Class "X" not found in /x/s.php:3',
        'Class "X" not found',
    ),
    "glibc": (
        "/x/server: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /x/server)",
        "GLIBC_2.38",
    ),
    "so": (
        "/x/server: error while loading shared libraries: libssl.so.1.1: cannot open shared object file: No such file or directory",
        "libssl.so.1.1",
    ),
    "dockername": (
        'docker: Error response from daemon: Conflict. The container name "/x" is already in use by container "abc".\n'
        "See 'docker run --help'.",
        "already in use",
    ),
}
"""What programs wrote in the end, by what kind of program, and a part of the line that matters."""


@pytest.mark.parametrize("kind", ENDS)
def test_the_line_that_matters_is_found(kind: str) -> None:
    text, expected = ENDS[kind]
    assert expected in telling_line(text.splitlines())


def test_what_says_nothing_gives_nothing_and_hostile_lines_are_cut() -> None:
    assert telling_line(["starting", "listening on stdio", ""]) == ""
    assert telling_line([]) == ""
    assert len(telling_line([f"Error: {'x' * 100_000}"])) <= MAX_LINE
    assert telling_line(["^" * 100_000, "(" * 100_000, "Error: x"]) == "Error: x"
