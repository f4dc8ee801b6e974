"""Programs and variables that are known to run code of the folder they start in."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePosixPath
from typing import Final

from tui.engine.definitions.definition import ServerDefinition
from tui.model.servers import Origin

RUNNERS: Final = frozenset(
    {"npx", "npx-cli", "npm", "npm-cli", "pnpm", "pnpx", "yarn", "yarnpkg", "bun", "bunx"}
    | {"corepack", "deno", "tsx", "ts-node", "nodemon", "electron", "volta", "volta-shim"}
    | {"uv", "uvx", "pip", "pipx", "pipenv", "poetry", "pdm", "hatch", "rye", "pixi", "tox"}
    | {"dotenv", "dotenvx", "foreman", "honcho", "terraform", "tofu"}
    | {"nox", "invoke", "inv", "conda", "mamba", "micromamba", "pytest", "ipython", "jupyter"}
    | {"bundle", "bundler", "rake", "gem", "composer", "artisan", "mix", "iex", "rebar3"}
    | {"make", "gmake", "just", "task", "ninja", "cmake", "meson", "scons", "bazel", "bazelisk"}
    | {"cargo", "rustup", "go", "dotnet", "gradle", "gradlew", "mvn", "mvnw", "ant", "sbt"}
    | {"mill", "lein", "clj", "clojure", "stack", "cabal", "zig", "swift", "dart", "flutter"}
    | {"nix", "nix-shell", "nix-build", "devbox", "devenv", "direnv", "mise", "asdf", "rtx"}
    | {"docker-compose", "podman-compose", "vagrant", "rscript", "r", "julia", "octave"}
    | {"bmake", "pmake", "qmake", "remake", "git", "hg", "svn", "jj", "fossil", "gdb", "lldb"}
    | {"vi", "vim", "nvim", "gvim", "view", "ex", "ed", "emacs", "emacsclient", "nano", "code"}
    | {"fastmcp", "uvicorn", "gunicorn", "hypercorn", "granian", "flask", "fastapi", "celery"}
)
"""Programs that run or obey what they find in the folder they start in."""

SHELLS: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh", "busybox"}
    | {"cmd", "powershell", "pwsh", "nu", "xonsh", "elvish"}
)
INTERPRETERS: Final = SHELLS | frozenset(
    {"python", "pythonw", "pypy", "node", "nodejs", "ruby", "jruby", "perl", "php", "lua"}
    | {"luajit", "java", "groovy", "kotlin", "scala", "tclsh", "wish", "guile", "racket"}
    | {"escript", "erl", "elixir", "qjs", "osascript", "awk", "gawk", "mono", "wasmtime"}
    | {"mawk", "nawk", "ld"}
)
CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl", "finch", "container"})
BUILDS: Final = frozenset({"compose", "build", "buildx", "bake"})
"""What makes them read the files of the folder; to run an image they need none."""

NODES: Final = frozenset({"node", "nodejs", "electron", "bun", "deno", "tsx", "ts-node", "nodemon"})
"""Programs that find a script without the ending of its name, and the main file of a folder."""

_NPM: Final = ("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml")
_PYTHON: Final = (
    *("pyproject.toml", "uv.toml", "uv.lock", "setup.py", "setup.cfg", "poetry.lock", "pdm.lock"),
    *("poetry.toml", "pdm.toml", ".pdm-python", "Pipfile", "hatch.toml", ".python-version"),
)
_COMPOSE: Final = (
    *("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"),
    *("compose.override.yaml", "compose.override.yml", "docker-compose.override.yml"),
    *("Dockerfile", "Containerfile", "docker-bake.hcl", ".env"),
)
_NPM_RUNNERS: Final = (
    *("npx", "npx-cli", "npm", "npm-cli", "pnpm", "pnpx", "yarn", "yarnpkg", "bun", "bunx"),
)
MANIFESTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_NPM_RUNNERS, _NPM),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv"), _PYTHON),
    **dict.fromkeys((*CONTAINERS, "docker-compose", "podman-compose"), _COMPOSE),
    **dict.fromkeys(("make", "gmake", "bmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
    "cargo": ("Cargo.toml", "Cargo.lock", "build.rs", ".cargo/config.toml"),
    "go": ("go.mod", "go.work", "main.go"),
    "deno": ("deno.json", "deno.jsonc", "deno.lock"),
    "rake": ("Rakefile", "rakefile"),
    "bundle": ("Gemfile", "Gemfile.lock"),
    "composer": ("composer.json",),
    "mvn": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "mix": ("mix.exs",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py",)),
    **dict.fromkeys(("mise", "rtx"), ("mise.toml", ".mise.toml", ".tool-versions")),
    "direnv": (".envrc",),
    "cmake": ("CMakeLists.txt",),
    "ninja": ("build.ninja",),
    **dict.fromkeys(("terraform", "tofu"), ("main.tf",)),
    "nodemon": ("nodemon.json",),
    **dict.fromkeys(("tsx", "ts-node"), ("tsconfig.json",)),
}
"""The files that runners obey, by the names of these; looked for where they run, not above."""

_LOADING: Final = frozenset(
    {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "NODE_PATH", "NODE_OPTIONS", "RUBYLIB"}
    | {"RUBYOPT", "PERL5LIB", "PERLLIB", "PERL5OPT", "BASH_ENV", "ENV", "JAVA_TOOL_OPTIONS"}
    | {"PERL_USE_UNSAFE_INC", "LUA_PATH", "LUA_CPATH", "LUA_INIT", "PHPRC", "PHP_INI_SCAN_DIR"}
    | {"JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "LD_PRELOAD", "LD_LIBRARY_PATH"}
    | {"LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"}
)
"""Variables by which a program loads code into itself, whoever set them."""

_LOADER_NAMES: Final = _LOADING | frozenset(
    {"PATH", "PATHEXT", "NODE_EXTRA_CA_CERTS", "ZDOTDIR", "PYTHONSTARTUP", "PYTHONINSPECT"}
    | {"PERL5DB", "CLASSPATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF"}
    | {"GIT_EXEC_PATH", "GIT_DIR", "SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER", "BROWSER"}
    | {"SHELL", "HOME", "IFS", "PS4", "PROMPT_COMMAND", "HTTP_PROXY", "HTTPS_PROXY"}
    | {"ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    | {"NODE_TLS_REJECT_UNAUTHORIZED", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX"}
    | {"DOCKER_HOST", "PYTHONPYCACHEPREFIX", "BUNDLE_GEMFILE", "DOTNET_STARTUP_HOOKS", "TCLLIBPATH"}
)
_LOADER_PREFIXES: Final = (
    *("LD_", "DYLD_", "NPM_CONFIG_", "PIP_", "GIT_CONFIG", "BASH_FUNC_"),
    *("LUA_", "GEM_", "OPENSSL_"),
)

_ENDINGS: Final = (".exe", ".cmd", ".bat", ".com", ".ps1", ".js", ".cjs", ".mjs")
_VERSION: Final = re.compile(r"-?\d[\d.]*[a-z]{0,2}$")

_VARIANT: Final = re.compile(r"[\d.]*-.*$")
"""What follows the name of an interpreter in ``python3-dbg`` and ``perl5.36-x86_64-linux-gnu``."""

_PIECE_ENDS: Final = re.compile(r"[\s=:,;@!]+")


def program_names(*paths: str) -> set[str]:
    """Return the names of programs without extension, with and without version."""
    names: set[str] = set()
    for path in paths:
        name = PurePosixPath(path.replace("\\", "/")).name.lower()
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        names |= {name, _VERSION.sub("", name)}
    return names - {""}


def interpreters_in(names: AbstractSet[str]) -> AbstractSet[str]:
    """Return the interpreters among the names of programs, whatever follows their own."""
    return (names | {_VARIANT.sub("", name) for name in names}) & INTERPRETERS


def pieces_of(word: str) -> list[str]:
    """Split an argument into all that could be a path or a command in it."""
    pieces = [word, word.partition("=")[2], *_PIECE_ENDS.split(word)]
    pieces += [piece[2:] for piece in pieces if re.match(r"-\w", piece)]  # as in -fFILE
    return [piece for piece in dict.fromkeys(pieces) if piece]


def is_loader_variable(name: str) -> bool:
    """Return whether a variable changes which code a program loads or whom it talks to."""
    upper = name.upper()
    return upper in _LOADER_NAMES or upper.startswith(_LOADER_PREFIXES)


def variables_of(server: ServerDefinition, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a server's variables: its entry's, and what it inherits that loads code into it."""
    inherited = server.inheritance.of(environ, is_small=server.origin is Origin.PROJECT)
    loading = {name: value for name, value in inherited.items() if name.upper() in _LOADING}
    return loading | dict(server.env)
