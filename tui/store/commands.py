"""The user's commands. Each returns at once; results arrive as events."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tui.model.chat import MAIN, ConversationId, EntryId
from tui.model.servers import ServerId

if TYPE_CHECKING:  # loaded after the first frame, with the engine
    from tui.engine.engine import Engine
    from tui.model.consent import GrantId, RequestId
    from tui.model.events import Event
    from tui.model.models import ModelOptions
    from tui.model.requests import Answer
    from tui.model.sessions import SessionId


class Commands:
    """The UI's only way to the engine. A command that does not apply does nothing.

    Until there is a model to choose instead of, the last choice and the messages are kept; other
    commands have nothing to apply to before `attach`.

    Args:
        publish: Publishes messages that come back to the user.
    """

    def __init__(self, publish: "Callable[[Event], None]") -> None:
        self._publish = publish
        self._engine: Engine | None = None
        self._is_ready = False
        self._early_choice: Callable[[Engine], None] | None = None
        self._early_messages: list[tuple[ConversationId, str]] = []
        self._early_draft = ""

    def attach(self, engine: "Engine", *, is_ready: bool = True) -> None:
        """Run commands with this engine, those that were kept once it `is_ready` to chat."""
        self._engine, self._is_ready = engine, is_ready
        if self._early_draft:
            self.keep_draft(self._early_draft)
            self._early_draft = ""
        if not is_ready:
            return
        if self._early_choice is not None:
            self._early_choice(engine)
        for conversation, text in self._early_messages:
            engine.send(text, conversation)
        self._early_choice = None
        self._early_messages.clear()

    def send(self, text: str) -> None:
        """Send a message to the model; queued while a turn runs."""
        if self._engine is not None and self._is_ready:
            self._engine.send(text)
        else:
            self._early_messages.append((self._current, text))

    def cancel_turn(self) -> None:
        """Stop the running turn, down to the wire."""
        if texts := self._take_early():
            from tui.model.events import MessageReturned  # noqa: PLC0415 - rarely needed

            self._publish(MessageReturned("\n\n".join(texts), conversation=self._current))
        self._do(lambda engine: engine.cancel_turn())

    def send_without_waiting(self) -> None:
        """Send the message that waits for starting servers, or to go out again, at once."""
        self._do(lambda engine: engine.send_without_waiting())

    def give_up_retry(self) -> None:
        """Send the message that waits to go out again no more; it comes back."""
        self._do(lambda engine: engine.conversations.current.retry.end(again=False))

    def unqueue(self, text: str, *, give_back: bool) -> None:
        """Take a message that waits behind the running turn back, or drop it."""
        self._do(lambda engine: engine.conversations.unqueue(text, give_back=give_back))

    def clear_conversation(self) -> None:
        """Start a new conversation."""
        self._take_early()
        self._do(lambda engine: engine.clear_conversation())

    def new_conversation(self) -> None:
        """Open another conversation beside this one, and show it."""
        self._do(lambda engine: engine.conversations.open())

    def select_conversation(self, conversation: ConversationId) -> None:
        """Show an open conversation; other commands mean this one from now on."""
        self._do(lambda engine: engine.conversations.select(conversation))

    def close_conversation(self) -> None:
        """Close the conversation on the screen, unless it is the only one; its turn is stopped.

        What its messages led to is kept among the sessions.
        """
        self._do(lambda engine: engine.conversations.close())

    def answer(self, request: "RequestId", answer: "Answer") -> None:
        self._do(lambda engine: engine.desk.answer(request, answer))

    def start_demo_servers(self) -> None:
        """Run the bundled servers beside the user's."""
        self._do(lambda engine: engine.start_demo_servers())

    def review_folder(self) -> None:
        self._do(lambda engine: engine.review_folder())

    def forget_folder(self) -> None:
        """Revoke the trust of the opened folder; its servers stop."""
        self._do(lambda engine: engine.forget_folder())

    def review_tools(self, server: ServerId) -> None:
        self._do(lambda engine: engine.rules.review(server))

    def explain_tool(self, server: ServerId, tool: str) -> None:
        """Request the explanation of a tool's permission; it arrives as `ToolExplained`.

        Args:
            server: The tool's server.
            tool: The tool's name as shown.
        """
        self._do(lambda engine: engine.rules.explain(server, tool))

    def revoke_grant(self, grant: "GrantId") -> None:
        """Revoke a rule; the tools it covered are asked about again."""
        self._do(lambda engine: engine.rules.revoke(grant))

    def send_prompt(self, server: ServerId, prompt: str, arguments: Mapping[str, str]) -> None:
        self._do(lambda engine: engine.messages.send_prompt(server, prompt, arguments))

    def read_resource(self, server: ServerId, uri: str) -> None:
        """Read a resource for the user; it arrives as `ResourceRead`."""
        self._do(lambda engine: engine.features.read_resource(server, uri))

    def send_resource(self, server: ServerId, uri: str, text: str) -> None:
        self._do(lambda engine: engine.messages.send_resource(server, uri, text))

    def subscribe_resource(self, server: ServerId, uri: str, *, subscribed: bool) -> None:
        self._do(lambda engine: engine.features.subscribe(server, uri, subscribed=subscribed))

    def complete_argument(
        self,
        token: str,
        server: ServerId,
        target: str,
        argument: str,
        value: str,
        context: Mapping[str, str],
    ) -> None:
        """Ask a server to complete an argument; it arrives as `ArgumentCompleted`.

        Args:
            token: Identifies the request in the event.
            server: The server to ask.
            target: A prompt's name, or a resource template's URI template.
            argument: The argument's name.
            value: The text typed so far.
            context: The other arguments already filled in.
        """
        self._do(
            lambda engine: engine.features.complete(token, server, target, argument, value, context)
        )

    def complete_path(self, token: str, typed: str) -> None:
        """Complete a path of the opened folders; it arrives as `ArgumentCompleted`."""
        self._do(lambda engine: engine.features.complete_path(token, typed))

    def complete_folder(self, token: str, typed: str) -> None:
        """Complete the path of a folder; the answer arrives as `ArgumentCompleted`."""
        self._do(lambda engine: engine.features.complete_folder(token, typed))

    def add_folder(self, folder: str) -> None:
        """Open one more folder, and tell the servers."""
        self._do(lambda engine: engine.features.add_folder(folder))

    def read_context(self) -> None:
        """Read the files of context again; changes arrive as `ContextRead`."""
        self._do(lambda engine: engine.context_files.refresh())

    def open_link(self, url: str) -> None:
        self._do(lambda engine: engine.features.open_link(url))

    def set_log_level(self, server: ServerId, level: str) -> None:
        self._do(lambda engine: engine.features.set_log_level(server, level))

    def restart_server(self, server: ServerId) -> None:
        self._do(lambda engine: engine.servers.restart(server))

    def restart_all_servers(self) -> None:
        self._do(lambda engine: engine.servers.restart_all())

    def start_server(self, server: ServerId) -> None:
        self._do(lambda engine: engine.servers.start(server))

    def stop_server(self, server: ServerId) -> None:
        """Stop a server; it stays stopped."""
        self._do(lambda engine: engine.servers.stop(server))

    def set_server_enabled(self, server: ServerId, *, enabled: bool) -> None:
        self._do(lambda engine: engine.servers.set_enabled(server, enabled=enabled))

    def list_sessions(self) -> None:
        """List the saved sessions of the folder; they arrive as `SessionsListed`."""
        self._do(lambda engine: engine.sessions.list_sessions())

    def preview_session(self, session: "SessionId") -> None:
        """Read the end of a session; it arrives as `SessionPreviewed`."""
        self._do(lambda engine: engine.sessions.preview(session))

    def resume_session(self, words: str) -> None:
        """Go on with the session whose id begins so; empty for the latest."""
        self._do(lambda engine: engine.sessions.resume(words))

    def resume_beside(self, session: "SessionId") -> None:
        """Go on with a session in a new conversation, or where it is open."""
        self._do(lambda engine: engine.sessions.resume_beside(session))

    def rename_session(self, session: "SessionId", title: str) -> None:
        self._do(lambda engine: engine.sessions.rename(session, title))

    def delete_session(self, session: "SessionId") -> None:
        self._do(lambda engine: engine.sessions.delete(session))

    def export_session(self, words: str, path: str) -> None:
        """Write a session to a file, the open one if none is named; see `SessionCommands`."""
        self._do(lambda engine: engine.sessions.export(words, path))

    def keep_draft(self, text: str) -> None:
        """Save what stands in the composer, so that it outlives the process."""
        if self._engine is not None:
            self._engine.sessions.keep_draft(text)
        else:
            self._early_draft = text

    def edit_message(self, message: EntryId, text: str) -> None:
        """Send another text in place of an earlier message; what followed is kept as a copy."""
        self._do(lambda engine: engine.sessions.edit_message(message, text, engine.send))

    def retry_message(self, message: EntryId, text: str, model: str) -> None:
        """Send a message again in its own place, to another model of the same service."""
        self._do(lambda engine: engine.model.retry(message, text, model, engine.send))

    def sign_in(self, server: ServerId) -> None:
        """Sign in to a server; the questions and what comes of it arrive as events."""
        self._do(lambda engine: engine.sign_ins.begin(server))

    def sign_out(self, server: ServerId) -> None:
        """Revoke and forget the tokens of a server."""
        self._do(lambda engine: engine.sign_ins.end(server))

    def list_models(self) -> None:
        """Ask the service for its models; they arrive as `ModelsListed`."""
        self._do(lambda engine: engine.model.list_models())

    def use_model(self, name: str) -> None:
        """Let another model of the same service answer."""
        self._do(lambda engine: engine.model.use_model(name))

    def set_model_options(self, options: "ModelOptions") -> None:
        self._do(lambda engine: engine.model.set_options(options))

    def measure_context(self) -> None:
        """Say what fills the context; it arrives as `ContextMeasured`."""
        self._do(lambda engine: engine.model.measure())

    def compress(self) -> None:
        """Put a summary in place of the history."""
        self._do(lambda engine: engine.model.compress())

    def use_api_key(self, key: str) -> None:
        self._choose(lambda engine: engine.models.use_api_key(key))

    def use_address(self, address: str, key: str) -> None:
        """Use the Gemini API at an address; an empty key stands for the one kept for it."""
        self._choose(lambda engine: engine.models.use_address(address, key))

    def forget_key(self) -> None:
        """Forget the key that is used, with its address, or the project."""
        self._choose(lambda engine: engine.models.forget_key())

    def use_vertex(self, project: str, location: str) -> None:
        self._choose(lambda engine: engine.models.use_vertex(project, location))

    def use_demo(self) -> None:
        self._choose(lambda engine: engine.models.use_demo())

    @property
    def _current(self) -> ConversationId:
        return self._engine.conversations.current.key if self._engine is not None else MAIN

    def _take_early(self) -> list[str]:
        """Take the messages of the current conversation out of those that are kept."""
        here, early = self._current, self._early_messages
        self._early_messages = [one for one in early if one[0] != here]
        return [text for conversation, text in early if conversation == here]

    def _do(self, command: "Callable[[Engine], object]") -> None:
        if self._engine is not None:
            command(self._engine)

    def _choose(self, choice: "Callable[[Engine], None]") -> None:
        if self._engine is not None and self._is_ready:
            choice(self._engine)
        else:
            self._early_choice = choice
