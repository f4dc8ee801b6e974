"""Services of chat completions from the command line: their keys, `-p` and the doctor."""

import json

import pytest

from tests.cli.running import run, run_process
from tests.fakes.completions import KEY, FakeCompletions
from tests.fakes.gemini import Step
from tests.fakes.gemini_script import Call, Fail, Say
from tests.security.decks import write_settings
from tui.cli.output import ExitCode

pytestmark = pytest.mark.writes_secrets("credentials.json", "settings.json")


def named(fake: FakeCompletions, name: str = "fake", **more: object) -> None:
    write_settings({"gemdeck": {"services": {name: {"url": fake.url, **more}}}})


async def test_a_key_is_kept_for_a_service_at_its_address_alone() -> None:
    async with FakeCompletions() as fake:
        named(fake)
        keyed = ("key", "set", "--service", "fake", "--json")
        refused = await run_process(*keyed, stdin=b"wrong", code=ExitCode.ERROR)
        assert "no access" in refused.stderr
        assert "GEMINI" not in refused.stderr
        kept = await run_process(*keyed, stdin=KEY.encode(), code=0)
        assert kept.json["checked"]
        shown = await run("key", "show", "--json", env={"GEMINI_MODEL": "fake/large"}, code=0)
        assert (shown.json["service"], shown.json["address"]) == ("fake", fake.url)
        assert shown.json["kept"]
        assert KEY not in shown.stdout
        assert (await run("key", "show", code=ExitCode.NO_KEY)).stdout.startswith("There is no key")
        fake.steps = [[Say("here")]]
        said = await run("-m", "fake/large", "-p", "hi", code=0)
        assert said.stdout == "here\n"
        named(fake, "other")
        other = await run("-m", "other/large", "-p", "hi", code=ExitCode.ERROR)  # it has none
        assert "authorization" not in fake.requests[-1].headers
        assert "no access" in other.stderr
        named(fake)
        await run("key", "forget", "--service", "fake", code=0)
        shown = await run("key", "show", "--json", env={"GEMINI_MODEL": "fake/large"}, code=0)
        assert shown.json["source"] == "no key"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("key", "forget", "--service", "nope"), "There is no service nope", ExitCode.NOT_FOUND),
        (("key", "forget", "--service", "openai", "--address", "https://x"), "omit --address", 2),
        (("-m", "openai/gpt", "-p", "hi"), "--service openai or set OPENAI_API", ExitCode.NO_KEY),
    ],
)
async def test_what_cannot_be_is_said(
    arguments: tuple[str, ...], words: str, code: ExitCode
) -> None:
    assert words in (await run(*arguments, code=code)).stderr


async def test_a_whole_run_as_json(tmp_path: object) -> None:
    del tmp_path
    steps: list[Step] = [[Call([("go", {})])], [Say("done")]]
    async with FakeCompletions(steps) as fake:
        named(fake, key=KEY)
        result = await run("-m", "fake/large", "-p", "hi", "-o", "json", code=0)
        assert fake.violations == []
    assert result.json["response"] == "done"
    assert "fake/large" in json.dumps(result.json["stats"])


async def test_the_doctor_says_whether_it_answers_and_takes_tools() -> None:
    async with FakeCompletions() as fake:
        fake.offers = [{"id": "large", "capabilities": {"function_calling": False}}]
        named(fake, key=KEY)
        good = await run("doctor", env={"GEMINI_MODEL": "fake/large"}, code=0)
        for words in (
            "fake, with credentials from the service's entry",
            "fake/large does not support tools",
            fake.url,
        ):
            assert words in good.stdout
        assert KEY not in good.stdout
        named(fake, key="wrong-key-of-mine")
        bad = await run("doctor", env={"GEMINI_MODEL": "fake/large"}, code=ExitCode.ERROR)
        assert "The key has no access" in bad.stdout
        assert "wrong-key-of-mine" not in bad.stdout


async def test_a_failed_turn_says_what_to_do() -> None:
    async with FakeCompletions([[Fail(404, "no such model")]]) as fake:
        named(fake, key=KEY)
        result = await run("-m", "fake/none", "-p", "hi", code=ExitCode.ERROR)
    assert "The model none was not found" in result.stderr
