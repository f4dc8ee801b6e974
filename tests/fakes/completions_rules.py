"""What services of chat completions demand of a request, checked as the strictest do."""

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from tests.fakes.gemini_rules import ViolationError

Json = dict[str, Any]

REQUEST_KEYS: Final = frozenset(
    """
    model messages stream stream_options tools tool_choice max_tokens max_completion_tokens
    temperature reasoning_effort
    """.split()  # noqa: SIM905
)
MESSAGE_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
REASONING: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
ID: Final = re.compile(r"\S{1,64}")


def check_request(body: Json, *, is_strict: bool = True) -> None:
    """Check a whole request.

    Args:
        body: The request.
        is_strict: Whether keys that the service does not know are refused.

    Raises:
        ViolationError: With the message of the first rule that is broken.
    """
    for key in body.keys() - REQUEST_KEYS if is_strict else ():
        raise ViolationError(f"Unrecognized request argument supplied: {key}")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise ViolationError("you must provide a model parameter")
    if body.get("stream_options") and not body.get("stream"):
        raise ViolationError("The 'stream_options' parameter is only allowed when 'stream' is on.")
    if "tool_choice" in body and not body.get("tools"):
        raise ViolationError("'tool_choice' is only allowed when 'tools' are specified.")
    _check_tools(body)
    messages = body.get("messages") or []
    if not messages or messages[-1].get("role") not in {"user", "tool"}:
        raise ViolationError("Expected last role User or Tool for serving")
    for index, message in enumerate(messages):
        _check_message(index, message, is_strict=is_strict)
    _check_order(messages)
    _check_pairs(messages)


def _check_tools(body: Json) -> None:
    if body.get("tools") == []:
        raise ViolationError("[] is too short - 'tools'")
    names = [tool["function"].get("name", "") for tool in body.get("tools", ())]
    for index, name in enumerate(names):
        if not NAME.fullmatch(name):
            words = f"Invalid 'tools[{index}].function.name': string does not match pattern."
            raise ViolationError(words)
        if names.count(name) > 1:
            raise ViolationError(f"Tools must have unique names: {name}")
        schema = body["tools"][index]["function"].get("parameters")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            words = f"Invalid schema for function '{name}': schema must be of 'type: \"object\"'."
            raise ViolationError(words)


def _check_message(index: int, message: Json, *, is_strict: bool) -> None:
    role, where = str(message.get("role")), f"messages[{index}]"
    if role not in MESSAGE_KEYS:
        raise ViolationError(f"Invalid value: '{role}' for '{where}.role'.")
    unknown = message.keys() - MESSAGE_KEYS[role] - (REASONING if role == "assistant" else set())
    if unknown and is_strict:
        raise ViolationError(f"Unknown parameter: '{where}.{sorted(unknown)[0]}'.")
    content, calls = message.get("content"), message.get("tool_calls")
    if content is None and not (role == "assistant" and calls):
        raise ViolationError(f"Invalid value for '{where}.content': expected a string, got null.")
    if content is not None and not isinstance(content, str):
        if role != "user" or not isinstance(content, list) or not content:
            raise ViolationError(f"Invalid type for '{where}.content'.")
        for part in content:
            _check_part(where, part)
    if calls == []:
        raise ViolationError(f"Invalid '{where}.tool_calls': empty array.")
    for call in calls or ():
        if set(call) != {"id", "type", "function"} or call["type"] != "function":
            raise ViolationError(f"Invalid '{where}.tool_calls': {sorted(call)}")
        if not NAME.fullmatch(call["function"]["name"]) or not ID.fullmatch(call["id"]):
            raise ViolationError(f"Invalid '{where}.tool_calls': name or id does not match.")
        if not isinstance(json.loads(call["function"]["arguments"]), dict):
            raise ViolationError(f"Invalid '{where}.tool_calls': arguments are no object.")


def _check_part(where: str, part: Json) -> None:
    match part:
        case {"type": "text", "text": str() as text, **more} if text and not more:
            return
        case {"type": "image_url", "image_url": {"url": str() as url}} if url.startswith("data:i"):
            return
        case {"type": "input_audio", "input_audio": {"data": str(), "format": "wav" | "mp3"}}:
            return
        case {"type": "file", "file": {"filename": str(), "file_data": str()}}:
            return
    raise ViolationError(f"Invalid value for '{where}.content': {str(part)[:60]}")


def _check_order(messages: list[Json]) -> None:
    """The system speaks first and once, then users and the model by turns."""
    roles = [message["role"] for message in messages]
    if "system" in roles[1:]:
        raise ViolationError("System message must be at the beginning.")
    for before, after in pairwise(roles):
        if before == after and after != "tool":
            raise ViolationError(f"Conversation roles must alternate, not {before}, {after}.")
        if after == "assistant" and before == "system":
            raise ViolationError("The first message must be the user's.")


def _check_pairs(messages: list[Json]) -> None:
    """Each call is answered once, directly behind it and before anything else."""
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                raise ViolationError(
                    "messages with role 'tool' must be a response to a preceding message with "
                    f"'tool_calls': {message['tool_call_id']}"
                )
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            raise ViolationError(
                "An assistant message with 'tool_calls' must be followed by tool messages "
                f"responding to each 'tool_call_id': {open_ids}"
            )
        ids = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(ids)) < len(ids):
            raise ViolationError(f"Duplicate tool call ids: {ids}")
        open_ids += ids
    if open_ids:
        raise ViolationError(f"No tool output found for {open_ids}")


def as_contents(messages: list[Json]) -> list[Json]:
    """Return a conversation in Gemini's form, so that one test reads both services."""
    contents: list[Json] = []
    called: dict[str, str] = {}
    for message in messages:
        parts = _parts(message, called)
        role = "model" if message["role"] == "assistant" else "user"
        if message["role"] == "system":
            continue
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    return contents


def _parts(message: Json, called: dict[str, str]) -> list[Json]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        key = message["tool_call_id"]
        is_error = content.startswith("Error: ")
        said = {"error": content.removeprefix("Error: ")} if is_error else {"output": content}
        return [{"functionResponse": {"name": called[key], "id": key, "response": said}}]
    if isinstance(content, str):  # notes of gemdeck's were parts of their own
        parts: list[Json] = [{"text": text} for text in re.split(r"\n(?=\[)", content) if text]
    else:
        parts = [*map(_part, content)]
    for call in message.get("tool_calls", ()):
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        called[call["id"]] = name
        parts.append({"functionCall": {"id": call["id"], "name": name, "args": arguments}})
    return parts


def _part(part: Json) -> Json:
    if part["type"] == "text":
        return {"text": part["text"]}
    if part["type"] == "input_audio":
        audio = part["input_audio"]
        return {"inlineData": {"mimeType": f"audio/{audio['format']}", "data": audio["data"]}}
    address = part["file"]["file_data"] if "file" in part else part["image_url"]["url"]
    kind, _, data = address.removeprefix("data:").partition(";base64,")
    return {"inlineData": {"mimeType": kind, "data": data}}
