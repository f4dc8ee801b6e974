"""What the details say of what is withheld or left out."""

from dataclasses import replace

from tui.model.catalog import PromptView, ResourceTemplateView, ResourceView, ToolId, ToolView
from tui.model.servers import Origin, ServerId, ServerInfo, ServerView, Transport
from tui.ui.widgets.text.describe import (
    describe_prompt,
    describe_resource,
    describe_server,
    describe_tool,
)

SERVER = ServerId("s")
REASON = "its name cannot be shown as it is"


def test_a_tool_names_what_is_left_out_of_it() -> None:
    tool = ToolView(ToolId("t"), "t", left_out=(f"parameter “x⟨U+200B⟩”: {REASON}",))
    shown = describe_tool(SERVER, tool, schema=False).plain
    assert f"left out: parameter “x⟨U+200B⟩”: {REASON}" in shown


def test_a_server_shows_its_instructions_as_they_were_sent() -> None:
    info = ServerInfo("s", "1", "2025-11-25", instructions="Ask first. And more.")
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s", info=info)
    unsent = describe_server(view, 0).plain
    assert unsent.endswith("Instructions, not sent to the model\nAsk first. And more.")
    sent = describe_server(view, 0, "Ask first.\n… [10 more characters left out]").plain
    assert sent.endswith("sent to the model\nAsk first.\n… [10 more characters left out]")
    assert "not sent" not in sent


def test_a_server_that_starts_elsewhere_says_so() -> None:
    view = ServerView(SERVER, Origin.USER, Transport.STDIO, "s")
    assert "gemdeck's" not in describe_server(view, 0).plain
    shown = describe_server(replace(view, starts_outside=True), 0).plain
    assert "an empty folder of gemdeck's" in shown


def test_a_prompt_says_why_it_cannot_be_sent_and_what_is_left_out() -> None:
    prompt = PromptView("(prompt 1)", "greet", problem=REASON, left_out=("argument “y”: hidden",))
    shown = describe_prompt(SERVER, prompt).plain
    assert f"✕ cannot be sent: {REASON}" in shown
    assert "left out: argument “y”: hidden" in shown


def test_a_resource_and_a_template_say_why_they_cannot_be_read() -> None:
    for resource in (
        ResourceView("memo://a", "a", problem=REASON),
        ResourceTemplateView("memo://{x}", "a", problem=REASON),
    ):
        assert f"✕ cannot be read: {REASON}" in describe_resource(SERVER, resource).plain
