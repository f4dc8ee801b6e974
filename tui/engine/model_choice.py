"""Which model answers: as settings and environment find it, then as the user chooses."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from pydantic import SecretStr

from tui.engine import late
from tui.engine.auth import key_store
from tui.engine.auth.credentials import (
    ModelAccess,
    find_access,
    key_access,
    vertex_access,
    with_file,
)
from tui.engine.auth.key_store import CredentialError, KeyStore
from tui.engine.bus import Publish
from tui.engine.chat.backends.backend import ModelBackend, ModelError
from tui.engine.demo.model import DemoBackend
from tui.engine.logs.redaction import Redactor
from tui.engine.options import EngineOptions
from tui.engine.tasks import TaskSet
from tui.engine.threads import OrderedWorker, in_daemon_thread
from tui.model.chat import NO_TURN, BackendKind, ModelView, Severity, TurnOutcome
from tui.model.events import ModelSelected, Notice, NoticeRaised, TurnFinished
from tui.model.settings import GemdeckSettings
from tui.text import clip, sanitize, sanitize_line

CLOSE_PATIENCE: Final = 2.0
"""Seconds that the last key gets to be stored at the end."""


class ModelChoice:
    """Opens models; the last choice wins.

    Args:
        publish: Takes `ModelSelected`, and notices of what went wrong.
        redactor: Is told every key.
        tasks: Run what a choice takes.
        use: Lets a model answer from now on.
        options: What the command line says.
    """

    def __init__(
        self,
        publish: Publish,
        redactor: Redactor,
        tasks: TaskSet,
        use: Callable[[ModelBackend], None],
        options: EngineOptions,
    ) -> None:
        self._publish = publish
        self._redactor = redactor
        self._tasks = tasks
        self._use = use
        self._options = options
        self._has_begun = False
        self._settings = GemdeckSettings()
        self._current: BackendKind | None = None
        self._choosing: asyncio.Task[None] | None = None
        self._keys = OrderedWorker()  # the key that was pasted last is the one that stays

    async def aclose(self) -> None:
        """Let a key be stored that was pasted just now."""
        await asyncio.to_thread(self._keys.close, CLOSE_PATIENCE)

    async def begin(self, settings: GemdeckSettings, own: Mapping[str, str]) -> None:
        """Find a model and open it, once; the demo stands in where it may.

        Args:
            settings: Say how to use it.
            own: What the user's ``.env`` sets.
        """
        self._settings = settings
        if self._has_begun or self._options.demo:
            return
        self._has_begun = True
        try:
            find = partial(find_access, with_file(own, os.environ), KeyStore())
            access = await in_daemon_thread(find)
            if access is not None:
                self._answer(await self._open(access))
                return
        except (CredentialError, ModelError) as error:
            self._complain(error)
        if self._options.demo_without_key:
            self._answer(DemoBackend(), needs_setup=True)

    def use_api_key(self, key: str) -> None:
        """Keep a Gemini key and let Gemini answer; the demo's servers leave."""
        self._redactor.register(key)
        self._choose(partial(self._keep, key))

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer, with the credentials of the environment; the demo's servers leave."""
        self._choose(partial(self._vertex, project, location))

    def use_demo(self) -> None:
        """Stay with the offline demo model, or let it answer again with its servers."""
        self._stop_choosing()
        if self._current is BackendKind.DEMO:
            self._announce(DemoBackend(), needs_setup=False)
        else:
            self._answer(DemoBackend())

    def return_unsent(self, text: str) -> None:
        """Give a message back because no model is there to take it."""
        words = f"Not sent, because there is no model: {clip(sanitize_line(text), 200)}"
        self._publish(NoticeRaised(Notice(Severity.WARNING, words, "Choose a model first.")))
        self._publish(TurnFinished(NO_TURN, TurnOutcome.FAILED, sanitize(text)))

    async def _keep(self, key: str) -> ModelAccess:
        """Store a key after all that were pasted before, however long a keyring takes."""
        store = KeyStore()
        kept = asyncio.wrap_future(self._keys.submit(partial(store.set, key)))
        try:
            async with asyncio.timeout(key_store.KEYRING_LIMIT):
                await asyncio.shield(kept)
        except TimeoutError:
            raise key_store.keyring_timeout() from None
        return key_access(os.environ, SecretStr(key.strip()), store.place)

    async def _vertex(self, project: str, location: str) -> ModelAccess:
        return vertex_access(os.environ, project, location)

    def _choose(self, find: Callable[[], Awaitable[ModelAccess]]) -> None:
        self._stop_choosing()
        self._choosing = self._tasks.start(self._switch(find))

    def _stop_choosing(self) -> None:
        if self._choosing is not None:
            self._choosing.cancel()

    async def _switch(self, find: Callable[[], Awaitable[ModelAccess]]) -> None:
        try:
            self._answer(await self._open(await find()))
        except (ValueError, OSError, ModelError) as error:
            self._complain(error)

    async def _open(self, access: ModelAccess) -> ModelBackend:
        if access.api_key is not None:
            self._redactor.register(access.api_key.get_secret_value())
        open_backend = partial(late.open_backend, access, self._settings)
        opening = in_daemon_thread(open_backend)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close)
            raise

    def _close(self, opening: asyncio.Future[ModelBackend]) -> None:
        """Close the model of a cancelled choice."""
        if opening.exception() is None:
            self._tasks.start(opening.result().aclose())

    def _answer(self, backend: ModelBackend, *, needs_setup: bool = False) -> None:
        self._announce(backend, needs_setup=needs_setup)
        self._use(backend)

    def _announce(self, backend: ModelBackend, *, needs_setup: bool) -> None:
        self._current = backend.kind
        model = ModelView(sanitize_line(backend.model, 64), backend.kind, needs_setup)
        self._publish(ModelSelected(model))

    def _complain(self, error: Exception) -> None:
        """Say why there is no other model than before."""
        advice = getattr(error, "advice", "") or "Nothing has changed."
        text = sanitize_line(self._redactor.redact(str(error)))
        self._publish(NoticeRaised(Notice(Severity.ERROR, text, sanitize_line(advice))))
