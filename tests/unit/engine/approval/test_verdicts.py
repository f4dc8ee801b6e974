"""What gemini-cli restricts is restricted here at least as much: its verdicts beside ours."""

from tests.unit.engine.approval.verdicts import ROWS, TOOLS, Case, cases, recorded
from tests.unit.engine.chats.support import make_policy, make_tool
from tests.unit.engine.settings.conftest import Machine, machine
from tui.model.consent import Effect, GrantScope

__all__ = ["machine"]

RANKS = {"allow": 0, "ask_user": 1, "deny": 2}
WORDS = {Effect.ALLOW: "allow", Effect.ASK: "ask_user", Effect.DENY: "deny"}

MAY_BE_STRICTER = ("user asks, yolo", "user asks, headless")
"""Rows whose rule has a condition that is not looked at here."""


def ours(machine: Machine, case: Case) -> dict[str, str]:
    row, permission = ROWS[case.row], case.permission
    server = {"command": "x", "trust": permission == "trust"}
    allow = [{"server": "git", "tool": "p*"}] if permission == "allowed" else []
    given = {"mcpServers": {"git": server}, "gemdeck": {"alwaysAllow": allow}}
    machine.write("user", {**row.settings, **given})
    for place, text in (("user", row.user), ("system", row.admin)):
        folder = machine.files[place].parent / "policies"
        folder.mkdir(exist_ok=True)
        (folder / "rules.toml").write_text(text)
    loaded = machine.load()
    policy = make_policy(allows_all=permission == "yolo")
    named = {name: make_tool(name.partition(".")[2], "git", trusted=True) for name in TOOLS}
    if permission in {"session", "saved"}:
        scope = GrantScope.SESSION if permission == "session" else GrantScope.EVERYWHERE
        policy.allow(named.values(), scope, "always this server")
    policy.configure(loaded.gemdeck.always_allow, loaded.gemdeck.always_deny, loaded.servers)
    return {name: WORDS[policy.judge(named[name], {"text": "main"}).effect] for name in named}


def rank(verdict: str, case: Case) -> int:
    """Return how strict a verdict is; where nobody can be asked, what asks denies."""
    return 2 if verdict == "ask_user" and not case.interactive else RANKS[verdict]


def test_no_verdict_is_looser_than_gemini_clis_and_few_are_stricter(machine: Machine) -> None:
    theirs, stricter = recorded(), set[tuple[str, str]]()
    for case in cases():
        for tool, verdict in ours(machine, case).items():
            here, there = rank(verdict, case), rank(theirs[case.name][tool], case)
            assert here >= there, (case.name, tool)
            if here > there and case.row not in MAY_BE_STRICTER:
                stricter.add((case.row, case.permission))
    # what was allowed for good does not lift a rule here, nor does a list at the same rank
    others = {one for one in stricter if one[1] != "saved"}
    # lists lift plan mode there, and --yolo does here as well, in the gate
    lifted = {("plan mode", permission) for permission in ("allowed", "session", "yolo")}
    assert others == {("user asks, 200", "allowed"), *lifted}
    assert {row for row, _ in stricter}.isdisjoint({"nothing", "no always", "user asks, plan"})
