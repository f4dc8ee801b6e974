"""What the Gemini service demands of a request, checked as it checks."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

Json = dict[str, Any]

REQUEST_KEYS: Final = {
    *("contents", "tools", "systemInstruction", "generationConfig", "toolConfig", "safetySettings")
}
DECLARATION_KEYS: Final = {"name", "description", "parametersJsonSchema"}
SCHEMA_KEYS: Final = frozenset(
    """
    $id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems
    minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering
    default nullable uniqueItems minLength maxLength pattern minProperties maxProperties
    """.split()  # noqa: SIM905
)
PART_KEYS: Final = {"text", "inlineData", "functionCall", "functionResponse"}
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_REQUEST: Final = "* GenerateContentRequest."
ANY_SIGNATURE: Final = "skip_thought_signature_validator"


class ViolationError(Exception):
    """The request would be answered with 400 and this message."""


def check_request(body: Json, signatures: Mapping[str, Json], *, needs_signatures: bool) -> None:
    """Check a whole request.

    Args:
        body: The request.
        signatures: Issued thought signatures, each with the part it was issued for.
        needs_signatures: Whether the model is one that demands them (Gemini 3+).

    Raises:
        ViolationError: With the message of the first rule that is broken.
    """
    for key in body.keys() - REQUEST_KEYS:
        raise ViolationError(_unknown(key, ": Cannot find field."))
    _check_tools(body.get("tools"))
    contents = body.get("contents") or []
    if not contents:
        raise ViolationError(f"{_REQUEST}contents: contents is not specified")
    for index, content in enumerate(contents):
        _check_content(index, content)
    _check_roles(contents)
    _check_pairing(contents)
    _check_signatures(contents, signatures, needs_signatures=needs_signatures)


def _unknown(name: str, where: str) -> str:
    return f'Invalid JSON payload received. Unknown name "{name}"{where}'


def _check_tools(tools: list[Json] | None) -> None:
    seen: set[str] = set()
    for position, tool in enumerate(tools or []):
        if not tool.get("functionDeclarations"):
            raise ViolationError(f"{_REQUEST}tools[{position}].tool_type: required")
        for index, declaration in enumerate(tool["functionDeclarations"]):
            where = f"tools[{position}].function_declarations[{index}]"
            name = declaration.get("name", "")
            if not NAME.fullmatch(name):
                raise ViolationError(f"{_REQUEST}{where}.name: Invalid function name.")
            if name in seen:
                raise ViolationError(f"Duplicate function declaration found: {name}")
            seen.add(name)
            for key in declaration.keys() - DECLARATION_KEYS:
                raise ViolationError(_unknown(key, f" at '{where}'"))
            schema = declaration.get("parametersJsonSchema", {})
            _check_schema(schema, f"{where}.parameters_json_schema")


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key not in SCHEMA_KEYS:
            raise ViolationError(_unknown(key, f" at '{where}': Cannot find field."))
        match key, value:
            case "properties" | "$defs", dict():
                for name, inner in value.items():
                    _check_schema(inner, f"{where}.{key}.{name}")
            case "items" | "additionalProperties", _:
                _check_schema(value, f"{where}.{key}")
            case "anyOf" | "oneOf" | "prefixItems", list():
                for index, inner in enumerate(value):
                    _check_schema(inner, f"{where}.{key}[{index}]")


def _check_content(index: int, content: Json) -> None:
    if content.get("role") not in {"user", "model"}:
        raise ViolationError(f"Role '{content.get('role')}' is not supported.")
    if not content.get("parts"):
        raise ViolationError(f"{_REQUEST}contents[{index}].parts: must not be empty.")
    for position, part in enumerate(content["parts"]):
        kinds = part.keys() & PART_KEYS
        if len(kinds) != 1 or part.keys() - PART_KEYS - {"thoughtSignature", "thought"}:
            raise ViolationError(f"Invalid value at 'contents[{index}].parts[{position}]' (oneof)")
        if part.get("text") == "" and "thoughtSignature" not in part:
            raise ViolationError(f"contents[{index}].parts[{position}].text: must not be empty.")
        if part.get("thought"):
            raise ViolationError(f"contents[{index}].parts[{position}]: a thought was sent back.")
        if "functionResponse" in part:
            _check_response(part["functionResponse"])


def _check_response(response: Json) -> None:
    if response.keys() - {"id", "name", "response", "parts"}:
        raise ViolationError("Request contains an invalid argument.")
    inner = response.get("response")
    if not isinstance(inner, dict) or set(inner) not in ({"output"}, {"error"}):
        raise ViolationError("function_response.response must hold output or error.")
    if not all(isinstance(value, str) for value in inner.values()):
        raise ViolationError("The referenced name in function_response.response does not match.")
    for part in response.get("parts", []):
        if not part.get("inlineData", {}).get("mimeType", "").startswith(("image/", "application")):
            raise ViolationError("Unsupported MIME type")


def _check_roles(contents: list[Json]) -> None:
    if contents[0]["role"] != "user":
        raise ViolationError("Please ensure that the first turn is a user turn.")
    for before, after in pairwise(contents):
        if before["role"] == after["role"]:
            raise ViolationError("Please ensure that roles alternate.")
    if contents[-1]["role"] == "model":
        raise ViolationError("Requests ending with a model turn are not supported.")


def _check_pairing(contents: list[Json]) -> None:
    """Each call is answered in the next content: same count, order, names and ids, first of all."""
    for index, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        responses = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        if responses and (index == 0 or contents[index - 1]["role"] != "model"):
            raise ViolationError(
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if content["role"] == "model":
            following = contents[index + 1]["parts"]
            answers = [p["functionResponse"] for p in following if "functionResponse" in p]
            if len(calls) != len(answers):
                raise ViolationError(
                    "Please ensure that the number of function response parts is equal to the "
                    "number of function call parts of the function call turn."
                )
            if any("functionResponse" not in part for part in following[: len(calls)]):
                raise ViolationError("Function responses must come before other parts.")
            for call, answer in zip(calls, answers, strict=True):
                if (call["name"], call.get("id")) != (answer.get("name"), answer.get("id")):
                    raise ViolationError("Request contains an invalid argument.")


def _check_signatures(
    contents: list[Json], signatures: Mapping[str, Json], *, needs_signatures: bool
) -> None:
    turn_start = max(
        index
        for index, content in enumerate(contents)
        if content["role"] == "user" and any("functionResponse" not in p for p in content["parts"])
    )
    for index, content in enumerate(contents):
        is_first = True
        for part in content["parts"] if content["role"] == "model" else ():
            signature = part.get("thoughtSignature")
            if signature and signature != ANY_SIGNATURE:
                bare = {key: value for key, value in part.items() if key != "thoughtSignature"}
                if signatures.get(signature) != bare:
                    raise ViolationError("Corrupted thought signature.")
            if "functionCall" in part:
                if is_first and not signature and needs_signatures and index > turn_start:
                    raise ViolationError(
                        "Function call is missing a thought_signature in functionCall parts. "
                        f"function call `default_api:{part['functionCall']['name']}` , position "
                        f"{index + 1}."
                    )
                is_first = False
