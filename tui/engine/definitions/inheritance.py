"""Which variables of the user's environment a server inherits.

The rules are those by which gemini-cli cleans the environment of its servers, with a few more
names on either side. They look at names and at what values look like; the variables that an entry
sets itself are not their concern.
"""

import re
import sys
from collections.abc import Mapping
from typing import Final

from tui.engine.logs.secret_names import has_secret_part
from tui.model.frozen import dataclass

_SMALL: Final = frozenset(
    {
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT"),
        *("PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME"),
        "USERPROFILE",
    }
    if sys.platform == "win32"
    else {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
)
"""What every program needs to find its home, its language and other programs."""

_PROXIES: Final = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "SOCKS_PROXY", "NO_PROXY"}
)
_PASSED: Final = frozenset(
    {
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
        *("CURL_CA_BUNDLE", "SSH_AUTH_SOCK", "XAUTHORITY", "AWS_DEFAULT_REGION"),
        "GOOGLE_CLOUD_PROJECT",
    }
)
_WITHHELD: Final = frozenset(
    {
        *("CLIENT_ID", "DB_URI", "CONNECTION_STRING", "DATABASE_URL", "SLACK_WEBHOOK_URL"),
        *("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "TWILIO_ACCOUNT_SID"),
        *("GOOGLE_CLOUD_ACCOUNT", "FIREBASE_PROJECT_ID"),
    }
)
_PASSWORD: Final = re.compile(r"//[^\s:@]{0,1024}:[^\s@]{1,1024}@")
_SECRET_VALUE: Final = re.compile(
    r"""
      -----BEGIN\ [A-Z0-9 ]{0,40}(?:PRIVATE\ KEY|CERTIFICATE)
    | :(?://[^\s:@]{0,1024}:[^\s@]{1,1024}@)
    | (?:gh[pousr]|github_pat)_\w{36}
    | AIzaSy[\w-]{33}
    | AKIA[A-Z0-9]{16}
    | eyJ[\w-]*\.[\w-]*\.[\w-]*
    | [sr]k_(?:live|test)_[0-9A-Za-z]{24}
    | xox[abpr]-[\w-]+
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_SHELL_FUNCTION: Final = "()"


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The user's own rules on what servers inherit; names in capitals.

    Attributes:
        allow: Names that pass whatever they look like. They are all that a project's server gets
            beyond the small set.
        block: Names that never pass, whatever else is said of them.
    """

    allow: frozenset[str] = frozenset()
    block: frozenset[str] = frozenset()

    def narrowed(self, other: "Inheritance") -> "Inheritance":
        """Return what passes by both."""
        return Inheritance(self.allow & other.allow, self.block | other.block)

    def added(self) -> list[str]:
        """Name what a project's server gets beyond the small set, where it is set."""
        return sorted(self.allow - self.block - _SMALL)

    def of(self, environ: Mapping[str, str], *, is_small: bool) -> dict[str, str]:
        """Return what a server inherits; a project's gets the small set."""
        return {
            name: value
            for name, value in environ.items()
            if self._passes(name.upper(), value) and (not is_small or self._is_small(name.upper()))
        }

    def _is_small(self, name: str) -> bool:
        return name in _SMALL or name.startswith("LC_") or name in self.allow

    def _passes(self, name: str, value: str) -> bool:
        if name in self.block or value.startswith(_SHELL_FUNCTION):
            return False
        if name.startswith("GEMINI_CLI_"):
            return True
        if name in _PROXIES:
            return name in self.allow or not _has_password(value)
        if _SECRET_VALUE.search(value):
            return False
        if name in self.allow | _PASSED or name.startswith("GIT_CONFIG_"):
            return True
        is_own = name.startswith("GEMDECK_")
        return not (is_own or name in _WITHHELD or has_secret_part(name))


def _has_password(proxy: str) -> bool:
    """Return whether a proxy's address, with a scheme or without, holds a password."""
    return _PASSWORD.search(proxy if "//" in proxy else f"//{proxy}") is not None
