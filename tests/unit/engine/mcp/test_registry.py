"""The names of tools and prompts over all servers, what the model holds, and the search."""

import re
import time
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.definitions import define_server
from tests.unit.engine.chats.support import make_tool
from tui.engine.definitions.definition import ServerDefinition
from tui.engine.mcp.catalog.offer import MAX_LISTED, RawOffer, ServerOffer, Tool, read_offer
from tui.engine.mcp.catalog.offered_tool import (
    OfferedTool,
    assign_names,
    sanitize_name,
    without_model_prefix,
)
from tui.engine.mcp.catalog.registry import (
    MAX_FOUND,
    Budget,
    Holding,
    Registry,
    ToolVisibility,
    search,
)
from tui.model.catalog import Off, ToolId, ToolView
from tui.model.servers import Origin, ServerId, Transport

GIT, SVN = ServerId("git"), ServerId("svn")
ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}")

tool_names = st.text(min_size=1, max_size=80) | st.sampled_from(
    ["echo", "Echo", "e cho", "e_cho", "a__echo", "default_api.echo", "default_api", "1", "x" * 70]
)
listed_tools = st.tuples(st.sampled_from(["a", "b", "A", "a b", "a_b", "c"]), st.lists(tool_names))
offers = st.lists(listed_tools, max_size=5, unique_by=lambda offer: offer[0])


def definition(server: ServerId, *, trust: bool = False) -> ServerDefinition:
    return define_server(server, Origin.USER, Transport.STDIO, trust=trust)


def offer(server: ServerId, *names: object) -> ServerOffer:
    more = {"description": f"of {server}", "inputSchema": {}}
    return read_offer(RawOffer(tools=[{"name": name, **more} for name in names]))


def registry(ready: set[ServerId]) -> Registry:
    made = Registry(lambda server: server in ready, ToolVisibility())
    made.configure([definition(GIT, trust=True), definition(SVN)])
    return made


def test_only_tools_of_ready_servers_are_offered_and_names_stay() -> None:
    ready = {GIT, SVN}
    made = registry(ready)
    made.update(GIT, offer(GIT, "log"))
    made.update(SVN, offer(SVN, "log"))
    ready.remove(GIT)
    assert [tool.id for tool in made.offered()] == ["svn__log"]
    assert [tool.id for tool in made.catalog(GIT).tools] == ["log"]
    made.configure([definition(SVN)])
    assert [tool.id for tool in made.offered()] == ["svn__log"], "it was given"
    assert made.catalog(GIT).tools == ()
    hg = ServerId("hg")
    made.configure([definition(SVN), definition(hg)])
    ready.add(hg)
    made.update(hg, offer(hg, "log"))
    assert [tool.id for tool in made.offered()] == ["svn__log", "log"], "who left is forgotten"


def test_a_declaration_is_what_gemini_takes() -> None:
    made = registry({GIT})
    made.update(GIT, offer(GIT, "log all"))
    [tool] = made.offered()
    schema = {"type": "object", "properties": {}}
    told = {"name": "log_all", "description": "of git", "parametersJsonSchema": schema}
    assert (tool.declaration, tool.name, tool.trusted) == (told, "log all", True)


def test_a_tool_that_cannot_be_offered_has_an_id_of_its_own_and_takes_no_name() -> None:
    made = registry({GIT, SVN})
    broken = read_offer(RawOffer(tools=[{"name": "log", "inputSchema": 5}, {"name": "log"}, 5, 6]))
    made.update(GIT, broken)
    made.update(SVN, offer(SVN, "log"))
    assert [tool.id for tool in made.offered()] == ["log"]
    ids = [tool.id for server in (GIT, SVN) for tool in made.catalog(server).tools]
    assert len(set(ids)) == 5


def test_the_present_definition_of_a_tool_is_known_under_any_name() -> None:
    made = registry({GIT, SVN})
    made.update(SVN, offer(SVN, "log"))
    [before] = made.offered()
    made.configure([definition(GIT)])
    made.update(GIT, offer(GIT, "log"))
    assert [tool.id for tool in made.offered()] == ["log"]
    made.configure([definition(GIT), definition(SVN)])
    made.update(SVN, offer(SVN, "log"))
    now = made.current(before)
    assert now is not None
    assert (before.id, now.id) == ("log", "svn__log")
    assert now.definition_hash == before.definition_hash


def switched(*, exclude: Iterable[str] = (), program: str = "a") -> list[ServerDefinition]:
    made = replace(definition(GIT), fingerprint=program, exclude_tools=frozenset(exclude))
    return [made, definition(SVN)]


def test_a_tool_that_is_off_keeps_its_name_and_nothing_else_of_it_changes() -> None:
    made = registry({GIT, SVN})
    made.configure(switched())
    for server in (GIT, SVN):
        made.update(server, offer(server, "log", "[b]", "log(all)"))
    whole = made.offered()
    made.switch(GIT, "log", off=True)
    assert made.offered() == made.held() == whole[1:]
    assert whole[0] not in search("log", made.offered())
    assert [tool.off for tool in made.catalog(GIT).tools] == [Off.SESSION, None, None]
    assert made.catalog(GIT).off == 1
    assert made.withheld_tool("log") == (whole[0], Off.SESSION)
    assert made.current(whole[0]) == whole[0], "the user can run it"
    made.configure(switched(exclude=["log(all)"]))
    made.judge_again()
    assert made.catalog(GIT).off == 2, "an entry names the tool before its parenthesis, too"
    assert [tool.problem for tool in made.catalog(GIT).tools][::2] == [Off.SETTINGS.value] * 2
    made.switch(GIT, "log", off=False)
    made.configure(switched())
    made.judge_again()
    assert made.offered() == whole


def test_what_is_off_goes_with_the_server_and_a_whole_server_with_what_it_gets_later() -> None:
    made = registry({GIT, SVN})
    made.configure(switched())
    made.update(GIT, offer(GIT, "log", "blame"))
    made.switch(GIT, None, off=True)
    made.update(GIT, offer(GIT, "log", "blame", "push"))
    assert made.offered() == ()
    made.configure(switched(program="another"))
    made.update(GIT, offer(GIT, "log", "push"))
    assert len(made.offered()) == 2, "another server of its name"
    made.configure(switched())
    made.update(GIT, offer(GIT, "log", "blame"))
    made.switch(GIT, "blame", off=False)
    assert [tool.name for tool in made.offered()] == ["blame"]
    made.switch(GIT, None, off=False)
    assert len(made.offered()) == 2
    for server in (SVN, ServerId("gone")):
        made.switch(server, None, off=True)  # which offers nothing, or is none
    assert len(made.offered()) == 2


def test_ten_thousand_tools_are_off_at_once() -> None:
    made = registry({GIT, SVN})
    made.update(GIT, offer(GIT, *map(str, range(MAX_LISTED))))
    begun = time.process_time()
    made.switch(GIT, None, off=True)
    assert time.process_time() - begun < 2, "far more than it takes"
    assert made.offered() == ()
    assert made.catalog(GIT).off == MAX_LISTED


def prompts(*names: object) -> ServerOffer:
    return read_offer(RawOffer(prompts=[{"name": name} for name in names]))


def test_prompts_that_clash_get_their_servers_name_and_lead_back() -> None:
    made = registry({GIT, SVN})
    made.update(GIT, prompts("log"))
    made.update(SVN, prompts("log", "svn_log"))
    renamed = {prompt.name: prompt.own_name for prompt in made.catalog(SVN).prompts}
    assert renamed == {"svn_log": "log", "svn_svn_log": "svn_log"}
    made = registry({GIT, SVN})
    made.update(SVN, prompts("log", "review"))
    made.update(GIT, prompts("log", "blame"))
    assert [prompt.name for prompt in made.catalog(GIT).prompts] == ["blame", "log"]
    assert [prompt.name for prompt in made.catalog(SVN).prompts] == ["review", "svn_log"]
    assert made.own_prompt_name(SVN, "svn_log") == "log"
    assert made.own_prompt_name(SVN, "review") == "review"
    assert made.own_prompt_name(SVN, "memo://{day}") == "memo://{day}"
    assert made.own_prompt_name(GIT, "log") == "log"
    made.configure([definition(SVN)])
    assert [prompt.name for prompt in made.catalog(SVN).prompts] == ["log", "review"]


def test_prompts_are_a_bijection_whatever_they_are_called() -> None:
    made = registry({GIT, SVN})
    made.update(GIT, prompts("a", "a", "git_a", "svn_a", "svn_a_2"))
    made.update(SVN, prompts("a", "svn_a", "a"))
    names = [prompt.name for server in (GIT, SVN) for prompt in made.catalog(server).prompts]
    assert names == ["a", "git_a", "svn_a", "svn_a_2", "svn_a_3", "svn_svn_a"]


names = st.lists(st.sampled_from(["a", "A", "a b", "a_b", "git_a", "git__a", "svn__a", "hg_a"]))


@given(st.tuples(names, names, names), st.permutations(range(3)))
def test_whoever_connects_first_each_name_leads_to_the_same_tool_and_prompt(
    listed: tuple[list[str], list[str], list[str]], order: list[int]
) -> None:
    servers = (GIT, SVN, ServerId("hg"))
    definitions = [definition(server) for server in servers]

    def connected(in_order: Iterable[int]) -> Registry:
        made = Registry(lambda _: True, ToolVisibility())
        made.configure(definitions)
        for index in in_order:
            raw: list[object] = [{"name": name, "inputSchema": {}} for name in listed[index]]
            offered = read_offer(RawOffer(tools=raw, prompts=raw))
            made.update(servers[index], offered)
        return made

    made, other = connected(range(3)), connected(order)
    assert made.offered() == other.offered()
    assert [made.catalog(s) for s in servers] == [other.catalog(s) for s in servers]
    tools = {(tool.server, tool.name): tool.id for tool in made.offered()}
    expected = {(s, name) for s, given in zip(servers, listed, strict=True) for name in given}
    assert set(tools) == expected
    assert len(set(tools.values())) == len(tools)
    shown = [(s, prompt.name) for s in servers for prompt in made.catalog(s).prompts]
    assert len({name for _, name in shown}) == len(shown)
    assert {(s, made.own_prompt_name(s, name)) for s, name in shown} == expected


three = (GIT, SVN, ServerId("hg"))


@given(st.lists(st.tuples(st.sampled_from(three), names)))
def test_a_name_that_was_given_leads_to_no_other_tool(
    lists: list[tuple[ServerId, list[str]]],
) -> None:
    made = Registry(lambda _: True, ToolVisibility())
    made.configure([definition(server) for server in three])
    given = dict[str, tuple[ServerId, str]]()
    for server, listed in lists:
        made.forget(server)  # as before a start with another definition
        made.update(server, offer(server, *listed))
        places = [three.index(tool.server) for tool in made.offered()]
        assert places == sorted(places), "they are in settings order, whoever was named first"
        for tool in made.offered():
            known = given.setdefault(tool.id.lower(), (tool.server, tool.name))
            assert known == (tool.server, tool.name)


def test_so_many_tools_that_are_gone_keep_their_names() -> None:
    for number, name in ((MAX_LISTED - 1, "svn__log"), (MAX_LISTED, "log")):
        made = registry({GIT, SVN})
        for listed in (["log"], [*map(str, range(number))], ["last"]):
            made.update(GIT, offer(GIT, *listed))
            assert len(made.offered()) == len(listed)
        made.update(SVN, offer(SVN, "log"))
        assert [tool.id for tool in made.offered()] == ["last", name]


RAW = ServerId("raw")


def sized(number: int, size: int) -> list[Tool]:
    """Make tools whose declarations have a size."""
    views = [ToolView(ToolId(f"t{n:03}"), f"t{n:03}", size=size) for n in range(number)]
    return [Tool(view.name, view, "", {}, {}, "") for view in views]


def test_what_the_model_holds_is_bounded_by_its_context() -> None:
    budget = Budget(max_tools=10_000, share=1, context=100_000)
    assert budget.max_bytes == 4_000
    holding = Holding(lambda: budget)
    tools = {RAW: sized(30, 400)}
    beyond = holding.beyond(tools)
    assert len(beyond) == 25
    holding.load(sorted(beyond))
    assert len(holding.beyond(tools)) == 20
    assert (RAW, "t029") not in holding.beyond(tools)
    budget.share = 50
    assert holding.beyond(tools) == frozenset()


def test_servers_share_what_there_is_and_the_newest_of_what_was_loaded_stays() -> None:
    holding = Holding(lambda: Budget(max_tools=10))
    tools = {RAW: sized(20, 1), ServerId("few"): sized(1, 1)}
    beyond = holding.beyond(tools)
    assert len(beyond) == 21 - 5
    assert (ServerId("few"), "t000") not in beyond
    holding.load((RAW, f"t{n:03}") for n in range(10, 16))
    assert beyond - holding.beyond(tools) == {(RAW, f"t{n:03}") for n in range(11, 16)}
    holding.load([(RAW, "t010")])
    assert (RAW, "t010") not in holding.beyond(tools)
    assert (RAW, "t011") in holding.beyond(tools)


def described(name: str, words: str, server: str = "notes") -> OfferedTool:
    tool = make_tool(name, server)
    return replace(tool, view=replace(tool.view, description=words))


def test_a_search_finds_tools_by_the_words_of_names_and_descriptions() -> None:
    tools = [
        described("list_branches", "Show all branches.", "git"),
        described("createIssue", "Open a ticket."),
        *(described(f"other_{n}", "Show something of a list.") for n in range(50)),
    ]
    issue, branches = "createIssue", "list_branches"
    found = {"create issue": issue, "open a new ticket": issue, "branches of git": branches}
    for query, first in (found | {branches: branches, "weather": ""}).items():
        assert [tool.id for tool in search(query, tools)][:1] == [first][: bool(first)], query
    assert len(search("list", tools)) == MAX_FOUND


def test_a_name_is_made_one_that_gemini_allows() -> None:
    for name in ("echo", "get.file-name_2", "a" * 63):
        assert sanitize_name(name) == name
    changed = {"list files/all": "list_files_all", "grüße": "gr__e", "2nd": "_2nd", "-x": "_-x"}
    changed |= {"": "_", "a" * 30 + "b" * 40: "a" * 28 + "___" + "b" * 32}
    for name, expected in changed.items():
        assert sanitize_name(name) == expected, name


def test_names_stay_apart_from_each_other_and_from_what_is_reserved() -> None:
    names = assign_names([("git", ["log", "diff"]), ("svn", ["log"]), ("hg", ["log"])])
    assert list(names.values()) == ["log", "diff", "svn__log", "hg__log"], "the first keeps it"
    names = assign_names([("s", ["a b", "a_b", "a/b"])])
    assert names["s", "a_b"] == "a_b"
    assert len(set(names.values())) == 3
    names = assign_names([("one", ["Read"]), ("two", ["read"])])
    assert names == {("one", "Read"): "Read", ("two", "read"): "two__read"}
    tools = ["default_api", "default_api.x", "free"]
    names = assign_names([("s", tools)], reserved=["free"])
    assert names == {("s", tool): f"s__{tool}" for tool in tools}


@given(offers)
def test_names_are_a_bijection_for_good(given_offers: list[tuple[str, list[str]]]) -> None:
    names = assign_names(given_offers)
    assert set(names) == {(server, tool) for server, tools in given_offers for tool in tools}
    assert len({name.lower() for name in names.values()}) == len(names)
    assert all(ALLOWED.fullmatch(name) for name in names.values())
    shuffled = [(server, sorted(tools, key=hash)) for server, tools in given_offers]
    assert assign_names(shuffled) == names
    assert assign_names(given_offers, given=names) == names
    before = assign_names(given_offers[:-1])
    assert {key: names[key] for key in before} == before


def test_a_prefix_that_models_add_is_taken_off() -> None:
    for name in ("default_api.echo", "default_api:echo", "echo"):
        assert without_model_prefix(name) == "echo"
    assert without_model_prefix("my.default_api.echo") == "my.default_api.echo"
