"""A keyring for programs that a test starts."""

from typing import Final

SLOW_KEYRING: Final = """
import time
from pathlib import Path
from keyring.backend import KeyringBackend


class Slow(KeyringBackend):
    priority = 5

    def get_password(self, service, username):
        Path(__file__).with_name("asked").touch()
        time.sleep(25)

    def set_password(self, service, username, password):
        time.sleep(25)

    def delete_password(self, service, username):
        time.sleep(25)
"""
"""A module with a keyring that waits for a password that nobody enters.

It is found as ``slow_keyring.Slow`` and makes the file ``asked`` beside it when it is asked.
"""
