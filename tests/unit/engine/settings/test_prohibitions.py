"""What gemini-cli forbids holds here, and what it allows does not."""

import json
from pathlib import Path

import pytest

from tests.unit.engine.settings.conftest import Machine, messages
from tui.engine.approval.policy import DenyingPatterns
from tui.engine.settings.loader import LoadedSettings
from tui.engine.settings.prohibitions import MAX_POLICIES, MAX_POLICY, Permission, voids
from tui.engine.settings.sources import source
from tui.model.servers import ServerStatus

SERVERS = {"mcpServers": {"git": {"command": "x"}}}
DENIES_GIT = '[[rule]]\ndecision = "deny"\nmcpName = "git"\n'


def policy(machine: Machine, text: str | bytes, place: str = "user") -> Path:
    """Write a file of policies of the user or the system."""
    folder = machine.files[place].parent / "policies"
    folder.mkdir(exist_ok=True)
    file = folder / "mine.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def denied(loaded: LoadedSettings, server: str, tool: str) -> bool:
    rules = (rule for rule in loaded.gemdeck.always_deny if not voids(rule))
    return any(DenyingPatterns(rules).find(server, tool))


def asked(loaded: LoadedSettings, server: str, tool: str) -> bool:
    rules = (rule for rule in loaded.gemdeck.always_deny if set(voids(rule)) == set(Permission))
    return any(DenyingPatterns(rules).find(server, tool))


@pytest.mark.parametrize("place", ["user", "system"])
def test_a_deny_rule_holds_for_the_tools_that_it_names(machine: Machine, place: str) -> None:
    rows: list[tuple[str, list[str], list[str]]] = [
        ('toolName = "*"', ["git.push", "a.b"], []),
        ("", ["git.push", "a.b"], []),
        ('toolName = "mcp_*"', ["git.push", "a.b"], []),
        ('toolName = "mcp_git_*"', ["git.push", "git.a_b"], ["a.push", "git_hub.push"]),
        ('toolName = "mcp_git_push"', ["git.push", "GIT.Push"], ["git.pull", "a.push"]),
        ('toolName = "mcp_git_hub_push"', ["git_hub.push", "git.hub_push"], ["git.push"]),
        ('toolName = "mcp_my_srv_read_file"', ["my srv.read file", "my_srv.read_file"], ["a.b"]),
        ('toolName = "mcp_my_srv_*"', ["my srv.a"], ["my.srv_a", "srv.a"]),
        ('toolName = "mcp_srv_tool"', ["mcp_srv.tool", "srv.tool"], ["srv.other"]),
        ('toolName = ["mcp_git_push", "mcp_a_b"]', ["git.push", "a.b"], ["a.push"]),
        ('mcpName = "git"', ["git.push"], ["a.push"]),
        ('mcpName = "my srv"\ntoolName = "echo"', ["my srv.echo"], ["my srv.other", "a.echo"]),
        ('mcpName = "git"\ntoolName = ["push", "pull"]', ["git.push", "git.pull"], ["git.log"]),
        ('mcpName = "*"', ["git.push", "a.b"], []),
        ('mcpName = "*"\ntoolName = "push"', ["git.push", "a.push"], ["a.b"]),
        ('toolName = "write_file"', [], ["files.write_file"]),  # their own tool
        ('toolName = "run_shell_command"\ncommandPrefix = "rm"', [], ["sh.run_shell_command"]),
        ('mcpName = "git"\nmodes = ["plan"]', [], ["git.push"]),
        ('mcpName = "git"\nmodes = ["default", "plan"]', ["git.push"], []),
        ('mcpName = "git"\nsubagent = "coder"', [], ["git.push"]),
        ('mcpName = "git"\npriority = 1\ndenyMessage = "no"', ["git.push"], ["a.b"]),
    ]
    for rule, matches, others in rows:
        policy(machine, f'[[rule]]\ndecision = "deny"\n{rule}\n', place)
        loaded = machine.load()
        assert messages(loaded) == [], rule
        assert [name for name in matches if not denied(loaded, *name.split("."))] == [], rule
        assert [name for name in others if denied(loaded, *name.split("."))] == [], rule


def test_a_name_that_was_cut_in_the_middle_is_recognised(machine: Machine) -> None:
    tool = "a" * 40 + "b" * 40
    name = f"mcp_git_{tool}"
    cut = name[:30] + "..." + name[-30:]
    policy(machine, f'[[rule]]\ndecision = "deny"\ntoolName = "{cut}"\n')
    loaded = machine.load()
    assert denied(loaded, "git", tool)
    assert not denied(loaded, "git", "a" * 80)


@pytest.mark.parametrize("place", ["policy", "tools.exclude"])
def test_a_name_whose_server_was_cut_is_recognised(machine: Machine, place: str) -> None:
    server, tool = "company internal knowledge-base", "delete_all_documents_from_index"
    name = f"mcp_{server}_{tool}".replace(" ", "_")
    cut = name[:30] + "..." + name[-30:]
    if place == "policy":
        policy(machine, f'[[rule]]\ndecision = "deny"\ntoolName = "{cut}"\n')
    else:
        machine.write("user", {"tools": {"exclude": [cut]}})
    loaded = machine.load()
    assert denied(loaded, server, tool)
    assert not denied(loaded, server, "read")


def test_an_allow_rule_of_a_higher_priority_lifts_no_prohibition(machine: Machine) -> None:
    policy(
        machine,
        '[[rule]]\ndecision = "deny"\nmcpName = "git"\npriority = 1\n'
        '[[rule]]\ndecision = "allow"\nmcpName = "git"\ntoolName = "log"\npriority = 999\n'
        '[[rule]]\ndecision = "ask_user"\nmcpName = "other"\n',
    )
    loaded = machine.load()
    assert denied(loaded, "git", "log")
    assert loaded.gemdeck.always_allow == ()
    [problem] = messages(loaded)
    assert problem == "~/.gemini/policies/mine.toml: rule: allows nothing here: git: log"


def test_a_rule_with_a_condition_denies_whatever_the_arguments_are(machine: Machine) -> None:
    policy(machine, f'{DENIES_GIT}argsPattern = "main"\n')
    loaded = machine.load()
    assert denied(loaded, "git", "push")
    assert not loaded.problems


def test_policies_that_cannot_be_read_forbid_everything(machine: Machine) -> None:
    texts: list[str | bytes] = [
        *("[[rule", b'decision = "\xff"', "rule = 5"),
        '[[rule]]\ndecision = "deny"\ntoolName = 5\n',
        *('[[rule]]\ndecision = "deny"\nmcpName = ["a"]\n', "a = " + "[" * 5_000 + "]" * 5_000),
        *("#" * (MAX_POLICY + 1), '[[rule]]\ndecision = "deny"\n' * 1_001),
        *('[[rule]]\ndecision = "DENY"\nmcpName = "git"\n', '[[rule]]\nmcpName = "git"\n'),
    ]
    for text in texts:
        machine.write("user", SERVERS)
        policy(machine, text)
        loaded = machine.load()
        assert denied(loaded, "git", "log"), text[:40]
        [problem] = loaded.problems
        assert problem.message.endswith("no tool runs until this is fixed"), text[:40]
        assert not problem.fatal, text[:40]
        assert [server.withheld for server in loaded.servers] == [None], text[:40]


def test_a_folder_with_more_policies_than_are_read_forbids_everything(machine: Machine) -> None:
    folder = machine.files["user"].parent / "policies"
    folder.mkdir()
    for number in range(MAX_POLICIES + 1):
        (folder / f"{number}.toml").touch()
    loaded = machine.load()
    assert denied(loaded, "git", "log")
    [problem] = messages(loaded)
    assert problem.startswith("~/.gemini/policies: more than 100 files")
    folder.rename(folder.with_name("others"))
    assert not denied(machine.load(), "git", "log")
    folder.symlink_to(folder)
    assert denied(machine.load(), "git", "log"), "nor can a circle be read"


def test_no_variable_moves_the_systems_policies(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = machine.root / "fixed"
    (fixed / "policies").mkdir(parents=True)
    (fixed / "policies" / "a.toml").write_text(DENIES_GIT)
    monkeypatch.setattr(source, "_SYSTEM_FOLDER", str(fixed))
    assert machine.environ["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] != str(fixed / "settings.json")
    assert denied(machine.load(), "git", "log")


def test_a_place_of_policies_may_be_a_text_with_variables_and_is_named_if_it_is_not_there(
    machine: Machine,
) -> None:
    (machine.home / "a.toml").write_text(DENIES_GIT)
    machine.environ["RULES"] = str(machine.home)
    for places in (["$RULES/a.toml"], "~/a.toml"):
        machine.write("user", {"policyPaths": places, "adminPolicyPaths": ["~/gone"]})
        loaded = machine.load()
        assert denied(loaded, "git", "log")
        [problem] = messages(loaded)
        assert problem.endswith("adminPolicyPaths: ~/gone does not exist")


def test_further_places_of_policies_are_read(machine: Machine) -> None:
    elsewhere = machine.home / "rules"
    elsewhere.mkdir()
    for name in ("one", "two"):
        (elsewhere / f"{name}.toml").write_text(f'[[rule]]\ndecision = "deny"\nmcpName = "{name}"')
    machine.write("user", {"policyPaths": ["~/rules/one.toml"]})
    machine.write("system", {"adminPolicyPaths": [str(elsewhere)]})
    loaded = machine.load()
    assert denied(loaded, "one", "a")
    assert denied(loaded, "two", "a")
    rule = '[[rule]]\ndecision = "ask_user"\nmcpName = "git"\npriority = 1'
    (elsewhere / "one.toml").write_text(rule)
    (elsewhere / "two.toml").unlink()
    assert asked(machine.load(), "git", "a"), "an administrator's rule ranks above trust"
    machine.write("system", {})
    assert not asked(machine.load(), "git", "a")


@pytest.mark.parametrize("layer", ["defaults", "user", "system"])
def test_excluded_tools_of_all_layers_are_denied(machine: Machine, layer: str) -> None:
    machine.environ["T"] = "wipe"
    names = ["mcp_git_push", "$T", "git__tag", "rm(-rf)", "mcp_a_*"]
    machine.write(layer, {"tools": {"exclude": names}})
    loaded = machine.load()
    tools = [("git", "push"), ("x", "wipe"), ("git", "tag"), ("x", "rm"), ("a", "any")]
    assert all(denied(loaded, *tool) for tool in tools)
    assert not any(denied(loaded, *tool) for tool in [("x", "push"), ("git", "log"), ("b", "any")])
    assert messages(loaded) == []


def test_excluded_tools_that_cannot_be_read_forbid_everything(machine: Machine) -> None:
    for value in (5, {"a": 1}, [5], ["x" * 500], ["a"] * 1_001):
        machine.write("user", {"tools": {"exclude": value}})
        loaded = machine.load()
        assert denied(loaded, "git", "log"), value
        assert "no tool runs until this is fixed" in messages(loaded)[0]
    machine.write("user", {"tools": ["rm"]})
    assert denied(machine.load(), "git", "log")


def test_tools_to_be_confirmed_are_asked_about_and_a_list_that_cannot_be_read_means_all(
    machine: Machine,
) -> None:
    for names in (["mcp_git_push", "wipe"], "mcp_git_push"):
        machine.write("user", {"tools": {"confirmationRequired": names}})
        loaded = machine.load()
        assert messages(loaded) == []
        assert asked(loaded, "git", "push")
        assert not denied(loaded, "git", "push")
        assert not asked(loaded, "git", "pull")
    machine.write("user", {"tools": {"confirmationRequired": {"a": 1}}})
    loaded = machine.load()
    assert asked(loaded, "git", "pull")
    [problem] = messages(loaded)
    assert problem.endswith("every tool needs approval until this is fixed")


def test_what_switches_permissions_off_counts_unless_it_says_no(machine: Machine) -> None:
    for value, counts in [(True, True), ("true", True), ([], True), (0, False), ("false", False)]:
        machine.write("user", {"security": {"disableYoloMode": value, "disableAlwaysAllow": value}})
        loaded = machine.load()
        assert messages(loaded) == []
        where = "security.disableYoloMode in ~/.gemini/settings.json"
        assert loaded.no_yolo == (where if counts else ""), value
        void = {permission for rule in loaded.gemdeck.always_deny for permission in voids(rule)}
        assert void == ({Permission.YOLO, Permission.GRANTS} if counts else set()), value


def test_hooks_are_named_and_what_one_would_check_is_asked_about(machine: Machine) -> None:
    rows: list[tuple[object, list[str], list[str]]] = [
        ("mcp_git_push", ["git.push", "git.push_all"], ["git.pull", "a.push"]),
        ("^mcp_git_.*$", ["git.push"], ["a.push"]),
        ("mcp_(git|hub)_push", ["git.push", "hub.push"], ["a.pull"]),
        ("write|replace", ["files.write_file", "a.replace"], ["a.read"]),
        ("git.*delete", ["git.branch_delete"], ["a.delete"]),
        *((text, ["a.b"], []) for text in ("", "*", "a+b", "[a-z]", "x?", r"\w", "a" * 101, 5)),
    ]
    for matcher, matches, others in rows:
        before = [{"matcher": matcher, "hooks": [{"type": "command", "command": "check"}]}]
        machine.write("user", {"hooks": {"BeforeTool": before, "AfterTool": [], "disabled": ["x"]}})
        loaded = machine.load()
        [problem] = messages(loaded)
        why = "not run here: BeforeTool; what BeforeTool checks needs approval"
        assert problem == f"~/.gemini/settings.json:1: hooks: {why}"
        assert [one for one in matches if not asked(loaded, *one.split("."))] == [], matcher
        assert [one for one in others if asked(loaded, *one.split("."))] == [], matcher
    many = [{"matcher": "|".join(["ab"] * 30) + f"|x{number}"} for number in range(999)]
    machine.write("user", {"hooks": {"BeforeTool": many, "SessionStart": [{}]}})
    loaded = machine.load()
    assert "BeforeTool, SessionStart" in messages(loaded)[0]
    assert asked(loaded, "any", "tool"), "more than can be looked through"


def test_an_enablement_file_that_is_odd_turns_off_what_it_may_be_meant_to(machine: Machine) -> None:
    for content, is_off in [
        *(("{", True), ("[]", True), ('{"git": {"enabled": "false"}}', True)),
        *(('{"git": {"enabled": 0}}', True), ('{"git": false}', True), ('{"a": 5}', False)),
        *(('{"git": {}}', False), ('{"git": {"enabled": true}}', False)),
    ]:
        machine.write("user", SERVERS)
        (machine.home / ".gemini" / "mcp-server-enablement.json").write_text(content)
        loaded = machine.load()
        [git] = loaded.servers
        assert git.withheld is (ServerStatus.DISABLED if is_off else None), content
        assert len(loaded.problems) == (content in {"{", "[]"})


def test_what_was_meant_to_exclude_servers_and_cannot_be_read_lets_none_start(
    machine: Machine,
) -> None:
    for mcp in ({"excluded": {"git": True}}, {"excluded": 5}, [5], "git"):
        machine.write("user", {**SERVERS, "mcp": mcp})
        loaded = machine.load()
        assert [server.withheld for server in loaded.servers] == [ServerStatus.DISABLED], mcp
        assert any("no server starts until" in words for words in messages(loaded))


def test_a_policy_without_rules_is_named(machine: Machine) -> None:
    policy(machine, '[[rules]]\ndecision = "deny"\n')
    [problem] = messages(machine.load())
    assert problem.endswith("has no [[rule]], so it denies nothing")


def test_variables_that_gemini_cli_withholds_are_withheld_and_its_list_allows_none(
    machine: Machine,
) -> None:
    redaction = {"allowed": ["MY_TOKEN"], "blocked": ["KUBECONFIG"]}
    machine.write("user", {**SERVERS, "security": {"environmentVariableRedaction": redaction}})
    loaded = machine.load()
    environ = {"MY_TOKEN": "t", "KUBECONFIG": "k", "HOME": "/h"}
    [git] = loaded.servers
    assert git.launch.inheritance.of(environ, is_small=False) == {"HOME": "/h"}
    [problem] = messages(loaded)
    assert problem.endswith("use gemdeck.environmentAllow")


def test_what_is_wrong_in_a_list_of_variables_takes_no_other_name_with_it(machine: Machine) -> None:
    for names in ["KUBECONFIG", ["KUBECONFIG", 5]]:
        theirs = {"environmentVariableRedaction": {"blocked": names}}
        for key, content in (
            ("gemdeck.environmentBlock", {"gemdeck": {"environmentBlock": names}}),
            ("security.environmentVariableRedaction.blocked", {"security": theirs}),
        ):
            machine.write("user", {**SERVERS, **content})
            loaded = machine.load()
            [git] = loaded.servers
            assert git.launch.inheritance.of({"KUBECONFIG": "k"}, is_small=False) == {}, names
            assert [problem.key for problem in loaded.problems] == [key] * (names != "KUBECONFIG")


def test_a_projects_permissions_and_old_names_are_named_as_well(machine: Machine) -> None:
    content = {"tools": {"allowed": ["*"]}, "allowMCPServers": ["a"]}
    machine.write("project", json.dumps(content))
    said = messages(machine.load())
    assert any("tools.allowed: allows no tool here" in words for words in said)
    assert any("allowMCPServers (now mcp.allowed)" in words for words in said)


def test_the_model_of_the_environment_counts_if_it_is_one(machine: Machine) -> None:
    for name, model in [("gemini-x", "gemini-x"), ("auto", "ours"), ("../x", "ours"), ("", "ours")]:
        machine.write("user", {"gemdeck": {"model": "ours"}})
        (machine.home / ".gemini" / ".env").write_text(f"GEMINI_MODEL={name}\n")
        loaded = machine.load()
        assert loaded.gemdeck.model == model, name
        assert [problem.key for problem in loaded.problems] == (
            ["GEMINI_MODEL"] if name in {"auto", "../x"} else []
        )
        assert machine.load(model="mine").gemdeck.model == "mine", name


def test_the_users_env_file_does_not_move_the_systems_files(machine: Machine) -> None:
    machine.write("system", {"mcp": {"excluded": ["git"]}})
    machine.write("user", SERVERS)
    elsewhere = f"GEMINI_CLI_SYSTEM_SETTINGS_PATH={machine.home / 'gone'}\n"
    (machine.home / ".gemini" / ".env").write_text(elsewhere)
    assert machine.servers()["git"].withheld is not None


def test_old_names_and_dotted_keys_are_named(machine: Machine) -> None:
    old = ("enforcedAuthType", "maxSessionTurns", "approvalMode", "defaultApprovalMode")
    for key in (*old, "general.defaultApprovalMode", "tools.exclude"):
        machine.write("user", {key: "plan"})
        [problem] = messages(machine.load())
        assert f"old names, ignored: {key} (now " in problem
