"""Function declarations as real servers offer them, for the demo model's tests."""

from collections.abc import Mapping
from typing import Any

Declaration = Mapping[str, Any]


def declare(
    name: str,
    description: str = "",
    required: Mapping[str, Any] | None = None,
    optional: Mapping[str, Any] | None = None,
) -> Declaration:
    properties = {**(required or {}), **(optional or {})}
    return {
        "name": name,
        "description": description,
        "parametersJsonSchema": {
            "type": "object",
            "properties": properties,
            "required": list(required or {}),
        },
    }


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
FLAG = {"type": "boolean"}
WORDS = {"type": "array", "items": {"type": "string"}}

NOTES = (
    declare(
        "list_notes",
        "List the notes in the notebook, newest first.",
        optional={
            "tag": {"anyOf": [TEXT, {"type": "null"}], "description": "Only notes with this tag"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20},
        },
    ),
    declare("search_notes", "Find the notes that contain all the given words.", {"query": TEXT}),
    declare("add_note", "Write a new note into the notebook.", {"text": TEXT}, {"tags": WORDS}),
    declare("update_note", "Replace the text of a note.", {"id": WHOLE, "text": TEXT}),
    declare("delete_note", "Delete a note for good.", {"id": WHOLE}),
)
SLOW = (
    declare(
        "count_slowly",
        "Count up to a number, one step at a time, and report the progress.",
        optional={
            "steps": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5},
            "seconds_per_step": {"type": "number", "minimum": 0, "maximum": 10},
        },
    ),
    declare("research", "Pretend to look into a topic, in several phases.", {"topic": TEXT}),
)
EVERYTHING = (
    declare("echo", "Echoes back the input string", {"message": TEXT}),
    declare("get-sum", "Returns the sum of two numbers", {"a": NUMBER, "b": NUMBER}),
    declare("get-tiny-image", "Returns a tiny MCP logo image"),
    declare(
        "get-annotated-message",
        "Demonstrates how annotations can be used",
        {"messageType": {"type": "string", "enum": ["error", "success", "debug"]}},
        {"includeImage": FLAG},
    ),
)
GIT = (
    declare("git_status", "Shows the working tree status", {"repo_path": TEXT}),
    declare("git_log", "Shows the commit logs", {"repo_path": TEXT}, {"max_count": WHOLE}),
    declare("git_show", "Shows a commit", {"repo_path": TEXT, "revision": TEXT}),
    declare("git_commit", "Records changes", {"repo_path": TEXT, "message": TEXT}),
    declare("git_add", "Stages file contents", {"repo_path": TEXT, "files": WORDS}),
    declare("git_branch", "Lists branches", {"repo_path": TEXT, "branch_type": TEXT}),
    declare("git_checkout", "Switches branches", {"repo_path": TEXT, "branch_name": TEXT}),
)
FILES = (
    declare("read_text_file", "Read the contents of a file as text", {"path": TEXT}),
    declare("write_file", "Create a new file or overwrite one", {"path": TEXT, "content": TEXT}),
    declare("list_directory", "Get a listing of all files and directories", {"path": TEXT}),
    declare("search_files", "Search for files by a pattern", {"path": TEXT, "pattern": TEXT}),
)
TIME = (
    declare("get_current_time", "Get current time in a timezone", {"timezone": TEXT}),
    declare(
        "convert_time",
        "Convert time between timezones",
        {"source_timezone": TEXT, "time": TEXT, "target_timezone": TEXT},
    ),
)
DEMO = NOTES + SLOW
ALL = DEMO + EVERYTHING + GIT + FILES + TIME
