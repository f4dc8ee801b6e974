from tui.engine.servers.catalog import RawOffer, ServerOffer, read_offer
from tui.engine.servers.registry import Registry
from tui.engine.settings.definitions import ServerDefinition
from tui.model.servers import Origin, ServerId, Transport

GIT, SVN = ServerId("git"), ServerId("svn")


def definition(server: ServerId, *, trust: bool = False) -> ServerDefinition:
    return ServerDefinition(server, Origin.USER, Transport.STDIO, trust=trust)


def offer(server: ServerId, *names: object) -> ServerOffer:
    tools: list[object] = [
        {"name": name, "description": f"of {server}", "inputSchema": {}} for name in names
    ]
    return read_offer(RawOffer(tools=tools), definition(server))


def registry(ready: set[ServerId]) -> Registry:
    made = Registry(lambda server: server in ready)
    made.configure([definition(GIT, trust=True), definition(SVN)])
    return made


def test_names_are_the_same_whoever_connects_first() -> None:
    first, second = registry({GIT, SVN}), registry({GIT, SVN})
    first.update(GIT, offer(GIT, "log"))
    first.update(SVN, offer(SVN, "log"))
    second.update(SVN, offer(SVN, "log"))
    second.update(GIT, offer(GIT, "log"))
    expected = [("log", GIT), ("svn__log", SVN)]
    assert [(tool.id, tool.server) for tool in first.offered()] == expected
    assert [(tool.id, tool.server) for tool in second.offered()] == expected


def test_only_tools_of_ready_servers_are_offered_and_names_stay() -> None:
    ready = {GIT, SVN}
    made = registry(ready)
    made.update(GIT, offer(GIT, "log"))
    made.update(SVN, offer(SVN, "log"))
    ready.remove(GIT)
    assert [tool.id for tool in made.offered()] == ["svn__log"]
    assert made.find("log") is None
    assert [tool.id for tool in made.catalog(GIT).tools] == ["log"]


def test_a_declaration_is_what_gemini_takes() -> None:
    made = registry({GIT})
    made.update(GIT, offer(GIT, "log all"))
    [tool] = made.offered()
    assert tool.declaration == {
        "name": "log_all",
        "description": "of git",
        "parametersJsonSchema": {"type": "object", "properties": {}},
    }
    assert tool.name == "log all"
    assert tool.trusted


def test_a_tool_is_found_with_the_prefix_that_models_add() -> None:
    made = registry({GIT})
    made.update(GIT, offer(GIT, "log"))
    assert made.find("default_api.log") is made.find("default_api:log") is made.find("log")
    assert made.find("other") is None


def test_a_tool_that_cannot_be_offered_has_an_id_of_its_own_and_takes_no_name() -> None:
    made = registry({GIT, SVN})
    broken = read_offer(RawOffer(tools=[{"name": "log"}, {"name": "log"}, 5, 6]), definition(GIT))
    made.update(GIT, broken)
    made.update(SVN, offer(SVN, "log"))
    assert [tool.id for tool in made.offered()] == ["log"]
    ids = [tool.id for server in (GIT, SVN) for tool in made.catalog(server).tools]
    assert len(set(ids)) == 5


def test_a_server_that_left_is_forgotten() -> None:
    made = registry({GIT, SVN})
    made.update(GIT, offer(GIT, "log"))
    made.update(SVN, offer(SVN, "log"))
    made.configure([definition(SVN)])
    assert [tool.id for tool in made.offered()] == ["log"]
    assert made.catalog(GIT).tools == ()


def test_the_present_definition_of_a_tool_is_known_under_any_name() -> None:
    made = registry({GIT, SVN})
    made.update(SVN, offer(SVN, "log"))
    [before] = made.offered()
    made.update(GIT, offer(GIT, "log"))
    now = made.current(before)
    assert now is not None
    assert (before.id, now.id) == ("log", "svn__log")
    assert now.definition_hash == before.definition_hash
