"""Which model answers: as settings and environment find it, then as the user chooses."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from tui.engine import late
from tui.engine.background import OrderedWorker, TaskSet, in_daemon_thread
from tui.engine.bus import Publish
from tui.engine.chats.backends.backend import ModelBackend, ModelError, Provider
from tui.engine.chats.conversations import Conversation, Conversations
from tui.engine.demo.model import DemoBackend
from tui.engine.keys import credentials, key_store
from tui.engine.keys.credentials import ModelAccess, Service, ServiceStore
from tui.engine.keys.key_store import CredentialError, KeyStore, checked_key
from tui.engine.keys.services import ModelService, known_services, service_of
from tui.engine.logs.redaction import Redactor
from tui.engine.options import EngineOptions
from tui.engine.settings.loader import LoadedSettings
from tui.model.chat import BackendKind, ModelView, Severity
from tui.model.events import Notice, NoticeRaised
from tui.model.input.addresses import is_loopback
from tui.model.models import ModelsListed, ServiceOffer
from tui.model.settings import DEFAULT_MODEL, GemdeckSettings
from tui.text import sanitize_line

Result = TypeVar("Result")

LOCAL_PATIENCE: Final = 0.3
"""Seconds for a service on this computer to accept a connection, over which nothing is sent."""

CLOSE_PATIENCE: Final = 2.0
"""Seconds that the last key gets to be stored at the end."""


@dataclass(eq=False, repr=False)
class ModelChoice:
    """Opens models; the last choice wins.

    Attributes:
        publish: Takes `ModelSelected`, and notices of what went wrong.
        redactor: Is told every key.
        tasks: Run what a choice takes.
        conversations: In which it answers.
        options: What the command line says.
        on_answer: Told which kind of service answers, whenever a model was chosen.
        services: Keeps the chosen service between runs.
        provider: Opens the models, in place of Gemini's.
    """

    publish: Publish
    redactor: Redactor
    tasks: TaskSet
    conversations: Conversations
    options: EngineOptions
    on_answer: Callable[[str], None]
    services: ServiceStore
    provider: Provider | None = None

    def __post_init__(self) -> None:
        self._has_looked = False
        self._found: ModelAccess | None = None
        self._access: ModelAccess | None = None
        self._settings, self._auth = GemdeckSettings(), ("", "")
        self._own: Mapping[str, str] = {}
        self._current: str | None = None
        self._choices = itertools.count()
        self._choosing: asyncio.Task[None] | None = None
        self._keys = OrderedWorker()

    async def aclose(self) -> None:
        """Let a key be stored that was pasted just now."""
        await asyncio.to_thread(self._keys.close, CLOSE_PATIENCE)

    @property
    def is_found(self) -> bool:
        """Whether there is a service to open; the demo is none."""
        return self._found is not None

    async def find(self, settings: LoadedSettings) -> None:
        """Find a model, once, as the settings allow."""
        self._settings, self._auth = settings.gemdeck, settings.run.auth
        self._own = settings.variables
        if not self._has_looked and self.options.needs_model and not self.options.demo:
            self._has_looked = True
            try:
                self._found = await self._find()
            except CredentialError as error:
                self._complain(error)

    async def begin(self) -> None:
        """Open the model that was found, unless the user chose one meanwhile.

        The demo stands in where it may.
        """
        is_chosen = self._choosing is not None or self._current is not None
        if not (is_chosen or self.options.demo) and self.options.needs_model:
            await asyncio.wait({self._choose(self._begin)})

    async def _begin(self) -> None:
        try:
            if (access := self._found) is not None:
                async with self._opened(access) as backend:
                    await self._answer(backend, access)
                return
        except ModelError as error:
            self._complain(error)
        if self.options.demo_without_key:
            self._answer_now({"": DemoBackend()}, needs_setup=True)

    def use_api_key(self, key: str) -> None:
        """Let Gemini answer, and keep the key, once the service has accepted it."""
        self.redactor.register(key)

        def find(keys: KeyStore) -> ModelAccess:
            return credentials.key_access(os.environ, SecretStr(checked_key(key)), keys.place)

        self._choose(partial(self._use, Service.GOOGLE, find))

    def use_address(self, address: str, key: str) -> None:
        """Let the Gemini API at an address answer, and keep both, once it has accepted the key.

        An empty key stands for the one that is kept for this address.
        """
        if key:
            self.redactor.register(key)

        def find(keys: KeyStore) -> ModelAccess:
            place = credentials.typed_base_url(address)
            secret = SecretStr(checked_key(key)) if key else keys.get(place)
            if secret is None:
                words = "There is no saved key for this address."
                raise CredentialError(words, advice="Enter its key as well.")
            return credentials.address_access(place, secret, keys.place)

        self._choose(partial(self._use, Service.ADDRESS, find))

    def use_service(self, model: str, key: str = "") -> None:
        """Let a model of a service answer, and keep that, with a key once it was accepted.

        Args:
            model: Its name, with the service before it.
            key: The service's key; empty for the one there is, or none.
        """
        if key:
            self.redactor.register(key)
        self._choose(partial(self._use, Service.NAMED, partial(self._find_service, model, key)))

    def use_model(self, name: str, one: Conversation) -> None:
        """Let another model answer in a conversation: a bare name means one of Gemini's."""
        if one.choosing is not None:
            one.choosing.cancel()
        one.choosing = self.tasks.start(self._carry_out(partial(self._use_model, name, one)))

    def forget_key(self) -> None:
        """Forget the key that is used, with its address, or the project.

        What the environment names answers then, or what else is kept, or the demo.
        """
        self._choose(self._forget_key)

    def use_vertex(self, project: str, location: str) -> None:
        """Let Vertex answer with the credentials of the environment, and keep the project."""

        def find(_: KeyStore) -> ModelAccess:
            return credentials.vertex_access(os.environ, project, location)

        self._choose(partial(self._use, Service.VERTEX, find))

    def use_demo(self) -> None:
        """Stay with the offline demo model, or let it answer again with its servers."""
        self._stop_choosing()
        self._answer_now({"": DemoBackend()})

    async def _use_model(self, name: str, one: Conversation) -> None:
        while (access := await self._reach(name, before := self._access)) is not None:
            async with self._opened(access, name) as backend:
                if one not in self.conversations:
                    return
                if before is self._access:  # else another service was chosen meanwhile
                    one.model = name
                    self.conversations.answer_with(one, backend, self._view(backend, access))
                    one.keep_settings()
                    self.on_answer(backend.kind)
                    return
        one.model = name  # for the service that is chosen next
        raise ModelError("The demo has no other model.", advice="Enter a key first (F9).")

    async def _reach(self, name: str, used: ModelAccess | None) -> ModelAccess | None:
        """Return how to reach the service of a model; None if there is none but the demo.

        Args:
            name: The model; a bare name is one of Gemini's.
            used: The service that answers.
        """
        if self.provider is not None:
            return ModelAccess(BackendKind.OTHER)
        if service_of(name, self.services_now()) is not None:
            find: Callable[[], ModelAccess | None] = partial(
                self._find_service, name, "", KeyStore()
            )
        elif used is None or used.service is None:
            return used
        else:
            environ = credentials.with_file(self._own, os.environ)
            find = partial(credentials.find_access, environ, KeyStore(), self.services.get())
        return credentials.permitted(await in_daemon_thread(find), self._auth)

    async def listed(self, service: str, used: ModelBackend | None) -> ModelsListed:
        """Ask a service for its models, by its name; "" means the one that is used."""
        services = () if self.provider is not None else await self._standing()
        try:
            is_demo = used is not None and used.kind is BackendKind.DEMO
            if not service and used is not None and not (is_demo and self.provider):
                models = await used.models()
                return ModelsListed(tuple(models), services=services)
            bare = "" if self.provider is not None else DEFAULT_MODEL
            name = bare if service in {"", BackendKind.GEMINI} else f"{service}/"
            if (access := await self._reach(name, self._access)) is None:
                raise ModelError("There is no model yet.")
            async with self._opened(access, name, learns=False) as backend:
                return ModelsListed(tuple(await backend.models()), "", service, services)
        except (ModelError, CredentialError) as error:
            told = sanitize_line(self.redactor.redact(f"{error} {error.advice}"))
            return ModelsListed((), told, service, services)

    async def _standing(self) -> tuple[ServiceOffer, ...]:
        """Say which services there are; those that can be asked now come first."""
        environ = credentials.with_file(self._own, os.environ)
        made = await asyncio.gather(
            *(_standing_of(one, environ) for one in self.services_now().values())
        )
        gemini = ServiceOffer(BackendKind.GEMINI.value, "", is_ready=True)
        return (gemini, *sorted(made, key=lambda one: not one.is_ready))

    def services_now(self) -> Mapping[str, ModelService]:
        """Return the services of chat completions, by name."""
        return known_services(self._settings, os.environ)

    def _find_service(self, name: str, key: str, keys: KeyStore) -> ModelAccess:
        """Find the service of a model, and its key. Blocks."""
        if (service := service_of(name, self.services_now())) is None:
            words = f"{sanitize_line(name, 100)} does not name a service."
            raise CredentialError(words, advice="Put one before the model: SERVICE/MODEL.")
        if key:
            service = replace(service, key=SecretStr(checked_key(key)))
        environ = credentials.with_file(self._own, os.environ)
        access = credentials.service_access(service, environ, keys)
        access = replace(access, source=keys.place, is_kept=True) if key else access
        return replace(access, model=name)

    async def _use(self, service: Service, find: Callable[[KeyStore], ModelAccess]) -> None:
        """Let a service answer that accepts the credentials, and keep what was entered."""
        store = KeyStore()
        access = await in_daemon_thread(partial(find, store))
        async with self._opened(access, learns=False) as backend:
            await backend.check()
            wins = credentials.overruling(credentials.with_file(self._own, os.environ))
            if service is Service.NAMED and "model" in self._settings.model_fields_set:
                wins = wins or "gemdeck.model"
            advice = f"In later runs, {wins} overrides this as long as it is set." if wins else ""
            notice = Notice(Severity.INFO, _accepted(access), advice, is_answer=True)
            try:
                keep = partial(credentials.keep_access, access, service, store, self.services)
                await self._in_order(keep)
                access = replace(access, is_kept=True)
            except CredentialError as error:
                words = f"The key works until gemdeck ends, but could not be saved: {error}"
                notice = Notice(Severity.WARNING, sanitize_line(words), error.advice)
                access = replace(access, source="this run")
            await self._answer(backend, access)
        self.publish(NoticeRaised(notice))

    async def _forget_key(self) -> None:
        used = self._access
        if used is None or not used.is_kept:
            used = ModelAccess(BackendKind.GEMINI)
        forget = partial(credentials.forget_access, used, KeyStore(), self.services)
        words = await self._in_order(forget)
        self.publish(NoticeRaised(Notice(Severity.INFO, words, is_answer=True)))
        try:
            if (access := await self._find()) is not None:
                async with self._opened(access) as backend:
                    await self._answer(backend, access)
                return
        except (ValueError, OSError, ModelError) as error:
            self._complain(error, "The demo answers until you choose another service (F9).")
        self._answer_now({"": DemoBackend()}, needs_setup=True)

    async def _find(self) -> ModelAccess | None:
        if self.provider is not None:
            return ModelAccess(BackendKind.OTHER)
        environ = credentials.with_file(self._own, os.environ)

        def find() -> ModelAccess | None:
            kept = self.services.get()
            return credentials.find_model(self._settings, environ, KeyStore(), kept)

        return credentials.permitted(await in_daemon_thread(find), self._auth)

    async def _in_order(self, change: Callable[[], Result]) -> Result:
        """Change what is kept after all changes before, however long a keyring takes."""
        changed = asyncio.wrap_future(self._keys.submit(change))
        try:
            async with asyncio.timeout(key_store.KEYRING_LIMIT):
                return await asyncio.shield(changed)
        except TimeoutError:
            raise key_store.keyring_timeout() from None

    def _choose(self, choice: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        self._stop_choosing()
        self._choosing = self.tasks.start(self._carry_out(choice))
        return self._choosing

    def _stop_choosing(self) -> None:
        if self._choosing is not None:
            self._choosing.cancel()

    async def _carry_out(self, choice: Callable[[], Awaitable[None]]) -> None:
        try:
            await choice()
        except (ValueError, OSError, ModelError) as error:
            self._complain(error)

    async def _open(self, access: ModelAccess, name: str = "") -> ModelBackend:
        """Open a model of a service: by its name, or its usual one, which the settings name."""
        credentials.permitted(access, self._auth)
        self.redactor.register(*access.secrets)
        if access.api_key is not None:
            self.redactor.register(access.api_key.get_secret_value())
        named, services = name or access.model or self._settings.model, self.services_now()
        if access.service is None and service_of(named, services) is not None:
            named = DEFAULT_MODEL
        settings = self._settings.model_copy(update={"model": named})
        if self.provider is not None and access.kind is BackendKind.OTHER:
            open_backend = partial(self.provider, name or self.options.model or "")
        else:
            open_backend = partial(late.open_backend, access, settings)
        opening = in_daemon_thread(open_backend)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._close)
            raise

    def _close(self, opening: asyncio.Future[ModelBackend]) -> None:
        """Close the model of a cancelled choice."""
        if opening.exception() is None:
            self.tasks.start(opening.result().aclose())

    @asynccontextmanager
    async def _opened(
        self, access: ModelAccess, name: str = "", *, learns: bool = True
    ) -> AsyncIterator[ModelBackend]:
        """Open a model, and close it if no conversation answers with it afterwards.

        If it `learns`, it knows what its service says of it, as far as that answers.
        """
        backend = await self._open(access, name)
        try:
            if access.service is not None and learns:
                with suppress(ModelError):  # its first answer says what is wrong
                    await backend.models()
            yield backend
        finally:
            if all(one.backend is not backend for one in self.conversations):
                await backend.aclose()

    async def _answer(self, backend: ModelBackend, access: ModelAccess) -> None:
        """Let a service answer, in each conversation the model that was chosen for it."""
        opened = {"": backend, backend.model: backend}
        async with AsyncExitStack() as stack:
            while missing := {one.model for one in self.conversations} - opened.keys():
                name = missing.pop()
                reached = await self._reach(name, access)
                opening = self._opened(reached, name) if reached is not None else None
                opened[name] = await stack.enter_async_context(opening) if opening else backend
            self._answer_now(opened, access)

    def _answer_now(
        self,
        opened: Mapping[str, ModelBackend],
        access: ModelAccess | None = None,
        *,
        needs_setup: bool = False,
    ) -> None:
        """Let models answer that were opened: by the names that were chosen, or one for all."""
        self._access, self._current = access, opened[""].kind
        for one in self.conversations:
            backend = opened.get(one.model, opened[""])
            view = self._view(backend, access, needs_setup=needs_setup)
            self.conversations.answer_with(one, backend, view)
        self.on_answer(opened[""].kind)

    def _view(
        self, backend: ModelBackend, access: ModelAccess | None = None, *, needs_setup: bool = False
    ) -> ModelView:
        return ModelView(
            sanitize_line(backend.model, 100),
            backend.kind,
            needs_setup,
            sanitize_line(access.source) if access is not None else "",
            access is not None and access.is_kept,
            next(self._choices),
            sanitize_line(access.base_url, 200) if access is not None else "",
        )

    def _complain(self, error: Exception, instead: str = "Nothing has changed.") -> None:
        """Say why a model does not answer, and what to do, or else what happens instead."""
        advice = getattr(error, "advice", "") or instead
        text = sanitize_line(self.redactor.redact(str(error)))
        self.publish(NoticeRaised(Notice(Severity.ERROR, text, sanitize_line(advice))))


def _accepted(access: ModelAccess) -> str:
    """Say that a service answers, and where its credentials are kept."""
    if access.service is not None:
        where = f" Its key is saved in {access.source}." if access.is_kept else ""
        return f"Now using {sanitize_line(access.model, 100)}.{where}"
    if access.kind is BackendKind.VERTEX:
        return f"Vertex accepted the credentials for {sanitize_line(access.project)}."
    where = f" at {sanitize_line(access.base_url, 200)}" if access.base_url else ""
    return f"The service{where} accepted the key. It is saved in {access.source}."


async def _standing_of(service: ModelService, environ: Mapping[str, str]) -> ServiceOffer:
    """Say how a service stands: one on this computer by whether it runs, another by its key."""
    if service.load is not None:
        return ServiceOffer(service.name, "its package is installed", is_ready=True)
    parts = urlsplit(service.url)
    if is_loopback(parts.hostname or ""):
        runs = await _accepts(parts.hostname or "", parts.port or 80)
        note = "running here" if runs else "not running here"
        return ServiceOffer(service.name, note, is_ready=runs, is_local=True)
    try:
        access = await in_daemon_thread(
            partial(credentials.service_access, service, environ, KeyStore())
        )
    except CredentialError as error:
        return ServiceOffer(service.name, sanitize_line(str(error)), is_ready=False)
    return ServiceOffer(service.name, f"key: {sanitize_line(access.source)}", is_ready=True)


async def _accepts(host: str, port: int) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(LOCAL_PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False
