"""How servers spell what is shown in a presentable form, where the two differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui.text import sanitize_line


@dataclass(frozen=True, slots=True)
class Spelling:
    """The server's own spelling of names and URIs that the screen shows in another form.

    Of several that look alike the first one counts.
    """

    prompts: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[tuple[str, str], str] = field(default_factory=dict)
    uris: Mapping[str, str] = field(default_factory=dict)

    def prompt(self, shown: str) -> str:
        """Give a prompt's name."""
        return self.prompts.get(shown, shown)

    def argument(self, prompt: str, shown: str) -> str:
        """Give the name of an argument of a prompt, which is named as shown."""
        return self.arguments.get((prompt, shown), shown)

    def uri(self, shown: str) -> str:
        """Give a URI or a URI template."""
        return self.uris.get(shown, shown)


def read_spelling(
    prompts: Sequence[object],
    resources: Sequence[object],
    templates: Sequence[object],
    max_name: int,
) -> Spelling:
    """Read off raw lists what is shown in another form than the server's.

    Args:
        prompts: The prompts as listed.
        resources: The resources as listed.
        templates: The resource templates as listed.
        max_name: Characters of a name that are shown.
    """
    names: dict[str, str] = {}
    arguments: dict[tuple[str, str], str] = {}
    uris: dict[str, str] = {}
    for prompt in prompts:
        name = _text(prompt, "name")
        shown = sanitize_line(name, max_name)
        if shown in names:
            continue
        names[shown] = name
        listed = prompt.get("arguments") if isinstance(prompt, dict) else None
        for argument in listed if isinstance(listed, list) else ():
            raw = _text(argument, "name")
            arguments.setdefault((shown, sanitize_line(raw, max_name)), raw)
    for uri in [_text(item, "uri") for item in resources]:
        uris.setdefault(sanitize_line(uri), uri)
    for uri in [_text(item, "uriTemplate") for item in templates]:
        uris.setdefault(sanitize_line(uri), uri)
    return Spelling(
        {shown: raw for shown, raw in names.items() if shown != raw},
        {key: raw for key, raw in arguments.items() if key[1] != raw},
        {shown: raw for shown, raw in uris.items() if shown != raw},
    )


def _text(item: Any, key: str) -> str:  # noqa: ANN401 - whatever a server lists
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""
