"""Conversations and answers in the words of chat completions; nothing here asks a service."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Final

from tui.engine.chats.backends.backend import ModelChunk, WireContent, WirePart
from tui.engine.chats.history import without_surrogates
from tui.model.bounded_json import as_list, as_object, text_in, value_or_none
from tui.model.chat import Usage
from tui.model.models import ModelOffer
from tui.text import sanitize_line

Json = dict[str, Any]

MAX_WIRE_NAME: Final = 64
"""Longest name of a tool, in characters."""

MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
"""Gemini's word for a call that cannot be read."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_.:-]")

_REASONING: Final = ("reasoning_content", "reasoning", "reasoning_details")
"""Where services have it; it goes back where it came from, unchanged."""

_SAME: Final = ("type", "index", "id")
"""What is equal in the pieces of one block of reasoning."""

_IN_PIECES: Final = frozenset({"text", "summary", "data"})

_FINISH: Final = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"), "STOP"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "STOP"),
    **dict.fromkeys(("length", "max_tokens", "model_length"), "MAX_TOKENS"),
    **dict.fromkeys(("content_filter", "sensitive", "refusal"), "SAFETY"),
}

_CONTEXT: Final = (
    *("context_length", "context_window", "max_context_length", "max_model_len"),
    "n_ctx_train",
)
"""Where services have the size of the context, what counts first."""

_CONTEXT_SET: Final = re.compile(r"^num_ctx\s+(\d{1,9})$", re.MULTILINE)
_OUTPUT: Final = ("max_completion_tokens", "max_output_tokens")

_THINKS: Final = {
    **{f"<{tag}>": f"</{tag}>" for tag in ("think", "thinking", "thought", "reasoning")},
    **{"[THINK]": "[/THINK]", "◁think▷": "◁/think▷", "<|channel>thought": "<channel|>"},
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",
}
"""Between what models have thoughts at the start of an answer, where their service leaves them."""

_PICTURE: Final = re.compile(r"data:(image/[\w.+-]+);base64,([A-Za-z0-9+/]+={0,2})")

_LEFT_OUT: Final = "[This part of the answer is left out: it is not text.]"

_BESIDE: Final = "[gemdeck: what the tools gave beside their texts]"
"""Stands before media of results, which have to go as the user's."""


class WireNames:
    """Names of tools as these services take them: letters, digits, ``_`` and ``-``.

    Args:
        declarations: The tools that are offered.

    Attributes:
        declared: How the service knows them, in their order.
    """

    def __init__(self, declarations: Sequence[Mapping[str, Any]]) -> None:
        self._meant: dict[str, str] = {}
        for one in declarations:
            spelled = _spelled(one["name"])
            while spelled in self._meant:
                spelled = f"{spelled[: MAX_WIRE_NAME - 2]}_2"
            self._meant[spelled] = one["name"]
        self.declared = [*self._meant]
        self._spelled = {name: spelled for spelled, name in self._meant.items()}

    def spell(self, name: str) -> str:
        """Return how the service knows a tool."""
        return self._spelled.get(name) or _spelled(name)

    def meant(self, spelled: str) -> str:
        """Return which tool the service means."""
        return self._meant.get(spelled) or _NOT_IN_IDS.sub("_", spelled)[:MAX_WIRE_NAME] or "_"


def _spelled(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:MAX_WIRE_NAME] or "_"


def wire_tools(declarations: Sequence[Mapping[str, Any]], names: WireNames) -> list[Json]:
    """Return tools as these services declare them."""
    return [
        {
            "type": "function",
            "function": {
                "name": names.spell(one["name"]),
                "description": one.get("description", ""),
                "parameters": one.get("parametersJsonSchema") or {"type": "object"},
            },
        }
        for one in declarations
    ]


def wire_messages(
    contents: Sequence[WireContent],
    names: WireNames,
    *,
    with_reasoning: bool = True,
    with_pictures: bool = True,
) -> Iterator[Json]:
    """Translate a conversation; every result of a tool is a message of its own.

    Args:
        contents: The conversation.
        names: How the service knows the tools.
        with_reasoning: Whether the service takes its reasoning back, within the running turn.
        with_pictures: Whether the model takes pictures.
    """
    asked = max((i for i, one in enumerate(contents) if _is_message(one)), default=0)
    open_ids: list[str] = []
    taken: set[str] = set()
    for number, content in enumerate(contents):
        parts = content["parts"]
        if content["role"] == "model":
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            open_ids = [_call_id(call, taken) for call in calls]
            kept = _reasoning(parts) if with_reasoning and number > asked else {}
            texts = [text for part in parts if (text := text_in(part, "text"))]
            said = "\n".join(texts) or (None if calls else _LEFT_OUT)
            message: Json = {"role": "assistant", "content": said, **kept}
            if calls:
                named = zip(calls, open_ids, strict=True)
                message["tool_calls"] = [_wire_call(call, key, names) for call, key in named]
            yield message
            continue
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for response, key in zip(responses, open_ids, strict=False):
            yield {"role": "tool", "tool_call_id": key, "content": _said(response["response"])}
        inside = [{**media} for response in responses for media in response.get("parts", ())]
        beside = [part for part in parts if "functionResponse" not in part]
        sent = [_wire_part(part, with_pictures) for part in (*inside, *beside)]
        if sent and responses:
            sent.insert(0, {"type": "text", "text": _BESIDE})
        if any(part["type"] != "text" for part in sent):
            yield {"role": "user", "content": sent}
        elif sent:
            yield {"role": "user", "content": "\n".join(part["text"] for part in sent)}


def _is_message(content: WireContent) -> bool:
    """Return whether a content is what a user said, and not the results of calls alone."""
    is_users = content["role"] == "user"
    return is_users and not any("functionResponse" in part for part in content["parts"])


def _call_id(call: Mapping[str, Any], taken: set[str]) -> str:
    """Return the id of a call: its own, unless it has none, or another call has it."""
    key = _NOT_IN_IDS.sub("_", str(call.get("id") or ""))[:MAX_WIRE_NAME]
    number = len(taken)
    while not key or key in taken:
        number += 1
        key = f"call{number:05}"
    taken.add(key)
    return key


def _wire_call(call: Mapping[str, Any], key: str, names: WireNames) -> Json:
    arguments = json.dumps(call.get("args") or {}, ensure_ascii=False)
    function = {"name": names.spell(str(call.get("name", ""))), "arguments": arguments}
    return {"id": key, "type": "function", "function": function}


def _reasoning(parts: Sequence[WirePart]) -> Json:
    """Return the reasoning that stands in the place of a thought signature; see `StepReader`."""
    signed = [part["thoughtSignature"] for part in parts if part.get("text") == ""]
    kept = value_or_none(str(signed[-1]).encode()) if signed else None
    return {key: kept[key] for key in _REASONING if key in kept} if isinstance(kept, dict) else {}


def _said(response: Mapping[str, Any]) -> str:
    error = response.get("error")
    return f"Error: {error}" if error is not None else str(response.get("output", ""))


def _wire_part(part: WirePart, with_pictures: bool) -> Json:
    media = part.get("inlineData")
    if media is None:
        return {"type": "text", "text": text_in(part, "text")}
    kind, data = media["mimeType"], media["data"]
    address = f"data:{kind};base64,{data}"
    match kind.split("/"):
        case ["image", _] if with_pictures:
            return {"type": "image_url", "image_url": {"url": address}}
        case ["audio", "wav" | "x-wav" | "mpeg" | "mp3" as form]:
            form = "wav" if form.endswith("wav") else "mp3"
            return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
        case ["application", "pdf"]:
            return {"type": "file", "file": {"filename": "file.pdf", "file_data": address}}
        case _:
            return {"type": "text", "text": f"[The {kind} is left out: the model cannot read it.]"}


@dataclass(slots=True)
class _Call:
    """A call that arrives in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, key: str, said: Mapping[str, Any]) -> None:
        self.id = self.id or key
        name, arguments = text_in(said, "name"), said.get("arguments")
        if name != self.name and not (self.name and self.arguments):  # some repeat it in each piece
            self.name += name
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments)
        if isinstance(arguments, str) and arguments:
            self.arguments.append(arguments)

    def part(self, names: WireNames) -> Json | None:
        """Return the call as a part; None if its arguments are no JSON object."""
        text = without_surrogates("".join(self.arguments)).strip()
        half = text[: len(text) // 2]  # some services end with all of it again, or begin with {}
        text = half if half * 2 == text else text.removeprefix("{}") or text
        arguments = value_or_none(text.encode()) if text not in {"", "null"} else {}
        if isinstance(arguments, str):
            arguments = value_or_none(arguments.encode())
        if not isinstance(arguments, dict) or not self.name:
            return None
        named = {"name": names.meant(self.name), "args": arguments}
        return {"functionCall": {**({"id": self.id} if self.id else {}), **named}}


class StepReader:
    """Puts the pieces of one answer together.

    Args:
        names: How the service knows the tools.
        context_limit: The size of the model's context, in tokens; 0 if unknown.

    Attributes:
        is_over: Whether the service said that nothing more follows.
        has_read: Whether anything of an answer came.
    """

    def __init__(self, names: WireNames, context_limit: int = 0) -> None:
        self._names, self._context_limit = names, context_limit
        self._calls: list[_Call] = []
        self._by_index: dict[object, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._reasoning: dict[str, list[Any]] = {}
        self._finish = self._held = ""
        self._thinks_to: str | None = None
        """What ends the thoughts that have begun; None at the start, empty without any."""
        self.is_over = self.has_read = False

    def read(self, data: Mapping[str, Any]) -> ModelChunk:
        """Read one piece, or a whole answer.

        Raises:
            TypeError: If it is none.
        """
        listed = as_list(data.get("choices"))
        choices = [one for one in listed if one.get("index") in {None, 0, "0", ""}]
        choice = choices[0] if choices else {}
        self.has_read = self.has_read or bool(choice)
        is_whole = bool(choice.get("message")) and choice.get("delta") is None  # some send both
        self.is_over = self.is_over or is_whole
        said = choice.get("message" if is_whole else "delta") or {}
        parts = self._thoughts(said)
        text = said.get("content") or choice.get("text")
        for part in chain(*map(_texts, (text, said.get("images"), said.get("refusal")))):
            parts += self._split(part["text"]) if part.keys() == {"text"} else [part]
        calls = said.get("tool_calls") or said.get("function_call")
        for piece in [calls] if isinstance(calls, Mapping) else as_list(calls):
            self._add_piece(piece)
        self._finish = text_in(choice, "finish_reason") or self._finish
        places = (data, choice, as_object(data.get("x_groq")))
        counted = next((one["usage"] for one in places if one.get("usage")), None)
        return ModelChunk(tuple(parts), usage=self._usage(counted))

    def end(self) -> ModelChunk:
        """Return the last chunk, with all calls; what has to go back with them stands behind."""
        parts = [call.part(self._names) for call in self._calls]
        finish = _FINISH.get(self._finish.lower(), self._finish.upper())
        if not finish and self.is_over:
            finish = "STOP"
        whole = [part for part in parts if part is not None]
        left = self._split("", is_last=True)
        if len(whole) < len(parts):
            return ModelChunk(tuple(left), MALFORMED)
        if whole and self._reasoning:
            kept = {key: _joined(pieces) for key, pieces in self._reasoning.items()}
            whole.append({"text": "", "thoughtSignature": json.dumps(kept)})
        return ModelChunk((*left, *whole), finish)

    def _split(self, text: str, *, is_last: bool = False) -> list[Json]:
        """Tell thoughts between tags from the answer after them, as far as it can be known."""
        text, self._held = self._held + text, ""
        if self._thinks_to is None:
            begun = text.lstrip()
            start = next((tag for tag in _THINKS if begun.startswith(tag)), "")
            if not (start or is_last) and any(tag.startswith(begun) for tag in _THINKS):
                self._held = text
                return []
            self._thinks_to = _THINKS.get(start, "")
            text = begun[len(start) :] if start else text
        end = self._thinks_to
        thought, found, rest = text.partition(end) if end else ("", "", text)
        if found:  # blanks may follow it first
            rest = rest.lstrip()
            self._thinks_to, self._held = ("", "") if rest else (end, end)
        elif end and not is_last:
            held = next(n for n in range(len(end) - 1, -1, -1) if text.endswith(end[:n]))
            thought, self._held = text[: len(text) - held], text[len(text) - held :]
        parts: list[Json] = [{"text": thought, "thought": True}, {"text": rest}]
        return [part for part in parts if part["text"]]

    def _add_piece(self, piece: Mapping[str, Any]) -> None:
        """Find the call that a piece belongs to; not every service numbers them well."""
        index, key = piece.get("index"), text_in(piece, "id")
        last = self._calls[-1] if self._calls else None
        said = as_object(piece.get("function")) or piece
        name = text_in(said, "name")
        same = self._by_id.get(key) if key else None
        if same and name and same.arguments and same.name not in {"", name}:
            same = None  # it has the id of another
        call = same or last if index is None else self._by_index.get(index)
        if call is None and not name:  # its arguments have the number of another
            call = same or (None if key else last)
        elif call is not None and call is not same and (name or index is None):
            is_next = index is None and name and call.arguments
            call = None if (key and call.id) or is_next else call
        if call is None:
            call = _Call()
            self._calls.append(call)
        self._by_index[index] = call
        call.add(key, said)
        self._by_id[call.id] = call

    def _thoughts(self, said: Mapping[str, Any]) -> list[Json]:
        """Keep the reasoning as it has to go back, and give what can be read of it."""
        details = as_list(said.get("reasoning_details"))
        texts = [without_surrogates(text_in(said, key)) for key in _REASONING[:2]]
        for key, pieces in zip(_REASONING, (*([text] for text in texts), details), strict=True):
            if any(pieces):
                self._reasoning.setdefault(key, []).extend(pieces)
        read = (text_in(one, "text") or text_in(one, "summary") for one in details)
        text = next(filter(None, texts), "") or without_surrogates("".join(read))
        return [{"text": text, "thought": True}] if text else []

    def _usage(self, counted: object) -> Usage | None:
        if not isinstance(counted, Mapping):
            return None
        prompt, output = _count(counted, "prompt_tokens"), _count(counted, "completion_tokens")
        thoughts = _count(counted.get("completion_tokens_details"), "reasoning_tokens")
        cached = _count(counted.get("prompt_tokens_details"), "cached_tokens")
        cached = cached or _count(counted, "prompt_cache_hit_tokens")
        if _count(counted, "total_tokens") <= prompt + output:  # else it counts thoughts beside
            output = max(0, output - thoughts)
        return Usage(prompt, output, thoughts, cached, prompt, self._context_limit)


def _joined(pieces: Sequence[Any]) -> Any:  # noqa: ANN401 - a text, or a list of blocks
    """Put texts together, or the pieces of blocks that say that they are the same."""
    if isinstance(pieces[0], str):
        return "".join(pieces)
    blocks: list[Json] = []
    for _, same in groupby(pieces, lambda one: [one.get(key) for key in _SAME]):
        block: Json = {}
        for key, value in ((key, value) for one in same for key, value in one.items()):
            block.setdefault(key, []).append(value)
        for key, values in block.items():
            is_text = key in _IN_PIECES and all(isinstance(value, str) for value in values)
            block[key] = "".join(values) if is_text else values[-1]
        blocks.append(block)
    return blocks


def _texts(content: object) -> Iterator[Json]:
    """Give the parts of an answer; Mistral's have lists in place of texts."""
    for one in [content] if isinstance(content, str) else as_list(content):
        if isinstance(one, str):
            yield from [{"text": without_surrogates(one)}] if one else ()
        elif "thinking" in one:
            for part in _texts(one["thinking"]):
                yield {**part, "thought": True}
        elif text := text_in(one, "text"):
            yield {"text": without_surrogates(text)}
        elif url := text_in(as_object(one.get("image_url")), "url") or text_in(one, "image_url"):
            found = _PICTURE.fullmatch(url)
            media = {"mimeType": found[1], "data": found[2]} if found else {}
            yield {"inlineData": media} if media else {"text": without_surrogates(f"\n{url}\n")}


def _count(counted: object, key: str) -> int:
    value = counted.get(key) if isinstance(counted, Mapping) else None
    return min(value, 2**53) if type(value) is int and value > 0 else 0  # more is not believed


def read_offer(one: Mapping[str, Any], service: str) -> ModelOffer:
    """Read an entry of a service's list of models, as far as it says anything.

    Args:
        one: The entry.
        service: The name of the service, with which that of the model begins.
    """
    name = sanitize_line(text_in(one, "id") or text_in(one, "name"), 150)
    name = name.rpartition("/")[2] if name.startswith("/") else name  # a file of llama.cpp's
    more = [one, *(one.get(key) for key in ("top_provider", "meta", "limits"))]
    found = [part for part in more if isinstance(part, Mapping)]
    sizes = (_count(part, key) for key in _CONTEXT for part in found)
    context = next(filter(None, sizes), 0)
    output = max((_count(p, key) for p in found for key in _OUTPUT), default=0)
    takes = one.get("capabilities") or one.get("supported_parameters")
    inputs = as_object(one.get("architecture")).get("input_modalities")
    title = sanitize_line(text_in(one, "display_name") or text_in(one, "name"), 100)
    return ModelOffer(
        f"{service}/{name}",
        title if title != name else "",
        context,
        output,
        _takes(takes, "tools", "function_calling"),
        _takes(inputs or takes, "image", "vision"),
        _takes(takes, "reasoning", "thinking"),
    )


def read_shown(said: Mapping[str, Any]) -> Json:
    """Return what Ollama's ``/api/show`` says of a model, in the form of an entry of a list."""
    sizes = as_object(said.get("model_info")).items()
    size = next((value for key, value in sizes if key.endswith(".context_length")), 0)
    own = _CONTEXT_SET.search(text_in(said, "parameters"))
    size = int(own[1]) if own else size
    return {"capabilities": said.get("capabilities"), "context_length": size}


def read_known(said: Mapping[str, Any]) -> Json:
    """Return what LM Studio's ``/api/v0/models`` says of a model; see `read_shown`."""
    tools, kind = _takes(said.get("capabilities"), "tool_use"), said.get("type")
    size = said.get("loaded_context_length") or said.get("max_context_length")
    able = {"tools": tools or None, "vision": kind == "vlm" if kind else None}
    return {"capabilities": able, "context_length": size}


def _takes(said: object, *words: str) -> bool | None:
    """Return whether a list or an object of abilities has one of them; None if it says nothing."""
    if isinstance(said, Mapping):
        known = [bool(said[word]) for word in words if said.get(word) is not None]
        return any(known) if known else None
    return any(word in said for word in words) if isinstance(said, list) else None
