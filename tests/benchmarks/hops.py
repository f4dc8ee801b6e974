"""``python3 -m tests.benchmarks.hops``: counts our own functions on four ways through the code.

    key to wire       Enter in the composer, until the model's service has the request
    byte to pixel     a server says that its tools changed, until their number is in the tree
    call to result    the model calls a tool, the user allows it, the service has the result
    edit to restart   the settings file is written, until the new server process is ready

The real command runs in a real terminal, against a service and a server of its own on loopback, so
that no class of ours is named here and two versions of the code can be compared. With a checkout
as its argument it measures that one (which needs `tests.support.terminal` and `tests.fakes`).

**The rule.** A hop is a distinct function, method or coroutine of `tui/` that was entered on the
way, in any task or thread, however often, *from another module* or from none of ours (a task, a
thread, a callback of a library): what a module does by itself is one place to look at. Not counted
are magic methods (`__init__` and the rest), properties, what dataclasses make, lambdas and
comprehensions; `tui/model` and `tui/text.py`, which are the data that travels; and what also runs
while nothing happens (timers). Of the screen only these count: on the way from the key what ran
before the store called the engine, on the way from the call what holds, asks and answers the
question (the bridge, `pending`, `dialogs`, `questions`), on the way to the pixel everything, on
the way from the settings nothing. A count by hand gives fewer, as it leaves out what is done
beside the way; before and after one rule are what compares.

Beside the hops stand all functions that were entered, whatever module they were entered from: what
moves from one module to another changes the first count and leaves the second.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

PATIENCE: Final = 60.0
"""Seconds for anything to happen."""

QUIET: Final = 1.0
"""Seconds in which what runs while nothing happens is seen, and anything that went before ends."""

OPENING: Final = 10.0
"""Seconds after the server is ready in which the opening ends, so that none of it seems idle."""

ARMING: Final = 1.5
"""Seconds after which a question takes an answer."""

LIMITS: Final = {
    "key to wire": 104,
    "byte to pixel": 115,
    "call to result": 234,
    "edit to restart": 196,
}
"""Most hops of each way."""

COMPLETE: Final = "complete"
"""The last line of what was traced."""


def serve(folder: Path) -> None:
    """Be a server that lists what `tools` holds, and says so when that file changes."""

    def send(message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def watch() -> None:
        tools = folder / "tools"
        before = tools.read_text()
        while True:
            time.sleep(0.02)
            if tools.read_text() != before:
                before = tools.read_text()
                send({"method": "notifications/tools/list_changed"})

    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "hops", "version": "1"},
                }
            case "tools/list":
                names = (folder / "tools").read_text().split()
                schema = {"type": "object", "properties": {"what": {"type": "string"}}}
                result = {"tools": [{"name": name, "inputSchema": schema} for name in names]}
                with (folder / "lists").open("a") as file:
                    file.write(f"{os.getpid()} {time.monotonic()}\n")
                if not any(thread.name == "watch" for thread in threading.enumerate()):
                    threading.Thread(target=watch, name="watch", daemon=True).start()
            case "tools/call":
                result = {"content": [{"type": "text", "text": "done"}]}
            case "ping":
                result = {}
            case _ if "id" in message:
                send({"id": message["id"], "error": {"code": -32601, "message": "not known"}})
                continue
            case _:
                continue
        send({"id": message["id"], "result": result})


def trace(out: Path, arguments: list[str]) -> None:
    """Run the command, and write down each entry into a function of ours: when, and which."""
    import tui.cli  # noqa: PLC0415 - the parent process needs nothing of ours

    home = str(Path(tui.cli.__file__).parents[1])
    entries: list[tuple[float, str, CodeType]] = []

    def enter(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = code.co_filename
        if event == "call" and file.startswith(home):
            caller = frame.f_back
            while caller is not None and not caller.f_code.co_filename.startswith(home):
                caller = caller.f_back
            entries.append((time.monotonic(), caller.f_code.co_filename if caller else "", code))

    def place_of(file: str) -> str:
        return Path(file).relative_to(home).as_posix() if file else "-"

    guard: Any = os
    guard._exit = lambda _: None  # it would cut what is written
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        tui.cli.main(arguments)
    finally:
        sys.setprofile(None)
        skipped = properties()
        with out.open("w") as file:
            for moment, caller, code in entries:
                if code not in skipped:
                    place = place_of(code.co_filename)
                    file.write(f"{moment} {place_of(caller)} {place} {code.co_qualname}\n")
            file.write(COMPLETE)


def properties() -> set[CodeType]:
    """Collect the code of all properties."""
    found = set()
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "tui"]:
        for kind in [value for value in vars(module).values() if isinstance(value, type)]:
            for value in vars(kind).values():
                getter = getattr(value, "fget", None) or getattr(value, "func", None)
                if code := getattr(getter, "__code__", None):
                    found.add(code)
    return found


Entry = tuple[float, str, str, str]
"""When a function was entered, the module it was entered from, its own and its name."""


def counted(place: str, name: str) -> bool:
    """Tell whether a function is one of those that count."""
    last = name.rpartition(".")[2]
    if last.startswith("<") or (last.startswith("__") and last.endswith("__")):
        return False
    return not place.startswith("model/") and place != "text.py"


def within(entries: list[Entry], begin: float, end: float, *, hops: bool) -> list[tuple[str, str]]:
    """List what was entered in a span of time, in order, each once; or only the hops."""
    return list(
        dict.fromkeys(
            (place, name)
            for moment, caller, place, name in entries
            if begin <= moment <= end and (caller != place or not hops) and counted(place, name)
        )
    )


def on_way(
    way: str, found: list[tuple[str, str]], shown: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Leave what belongs to a way; see the rule above.

    Args:
        way: The way.
        found: What was entered.
        shown: What of it was entered before the store called the engine.
    """
    if way == "key to wire":
        return [f for f in found if not f[0].startswith(("ui/", "store/")) or f in shown]
    if way == "call to result":
        asks = ("ui/pending", "ui/questions/", "ui/dialogs/", "ui/bridge")
        return [f for f in found if not f[0].startswith("ui/") or f[0].startswith(asks)]
    if way == "edit to restart":
        return [f for f in found if not f[0].startswith(("ui/", "store/"))]
    return found


def wait_until(condition: Callable[[], object]) -> float:
    """Wait until something holds; give the moment."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.002)
    return time.monotonic()


@contextmanager
def gemini() -> Iterator[Any]:
    """Serve a fake of the model's service from a thread."""
    from tests.fakes.gemini import FakeGemini  # noqa: PLC0415 - of the checkout that is measured

    fake = FakeGemini()
    loop = asyncio.new_event_loop()
    ends = asyncio.Event()

    async def run() -> None:
        async with fake:
            await ends.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    wait_until(lambda: fake.url)
    try:
        yield fake
    finally:
        loop.call_soon_threadsafe(ends.set)
        thread.join()
        loop.close()


class Measured:
    """A gemdeck that is traced, and the spans of its ways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spans: dict[str, tuple[float, float]] = {}
        for name in ("home/.gemini", "shop", "state"):
            (folder / name).mkdir(parents=True)
        (folder / "tools").write_text("look")
        self.configure(timeout=10_000)

    def configure(self, **more: object) -> None:
        entry = {"command": sys.executable, "args": [__file__, "serve", str(self.folder)], **more}
        settings = self.folder / "home" / ".gemini" / "settings.json"
        settings.write_text(json.dumps({"mcpServers": {"hops": entry}}))

    @property
    def lists(self) -> dict[str, float]:
        """When each process of the server was last asked for its tools."""
        lists = [line.split() for line in (self.folder / "lists").read_text().splitlines()]
        return {process: float(moment) for process, moment in lists}

    def drive(self, fake: Any) -> None:  # noqa: ANN401 - it is of the checkout that is measured
        """Go the four ways."""
        from tests.fakes.gemini import KEY  # noqa: PLC0415
        from tests.fakes.gemini_script import Call, Say, Sleep  # noqa: PLC0415
        from tests.support.terminal import Terminal  # noqa: PLC0415

        env = {
            **{"HOME": str(self.folder / "home"), "GEMDECK_HOME": str(self.folder / "state")},
            **{"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": fake.url},
            **{"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
            "TEXTUAL_ANIMATIONS": "none",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(self.folder / "none"),
        }
        command = [sys.executable, __file__, "trace", str(self.folder / "out")]
        with Terminal(command, env=env, cwd=self.folder / "shop") as terminal:
            terminal.wait_for("1 ready", PATIENCE)
            time.sleep(OPENING)
            begin = time.monotonic()
            time.sleep(QUIET)
            self.spans["idle"] = (begin, time.monotonic())

            def answer_late(_: object) -> list[Any]:
                time.sleep(QUIET)  # nothing of the answer is on the way
                return [Say("hello")]

            fake.steps = [answer_late]
            terminal.type("hi")
            terminal.wait_for("> hi", PATIENCE)
            time.sleep(2 * QUIET)  # the draft is kept after one second
            begin = time.monotonic()
            terminal.press("enter")
            wait_until(lambda: len(fake.requests) == 1)
            time.sleep(QUIET / 2)  # what threads write ends, which may be sooner or later
            self.spans["key to wire"] = (begin, time.monotonic())
            terminal.wait_for("hello", PATIENCE)
            time.sleep(QUIET)

            begin = time.monotonic()
            (self.folder / "tools").write_text("look zebra")
            terminal.wait_for("2 tools", PATIENCE)
            self.spans["byte to pixel"] = (begin, time.monotonic())
            time.sleep(QUIET)

            declared = fake.requests[0].body["tools"][0]["functionDeclarations"]
            came: list[float] = []

            def end(_: object) -> list[Any]:
                came.append(time.monotonic())  # before anything is answered, which is on no way
                return [Say("ok")]

            fake.steps = [[Sleep(QUIET), Call([(declared[0]["name"], {"what": "x"})])], end]
            terminal.type("again")
            terminal.press("enter")
            begin = wait_until(lambda: len(fake.requests) == 2) + QUIET / 2
            terminal.wait_for("wants to run", PATIENCE)
            time.sleep(ARMING)
            terminal.press("o")
            wait_until(lambda: came)
            self.spans["call to result"] = (begin, came[0])
            time.sleep(QUIET)

            before = self.lists
            begin = time.monotonic()
            self.configure(timeout=20_000)
            wait_until(lambda: self.lists.keys() - before.keys())
            self.spans["edit to restart"] = (begin, max(self.lists.values()))
            time.sleep(QUIET)
            terminal.press("ctrl+q")
            terminal.wait_for_exit(PATIENCE)


def read(out: Path) -> list[Entry]:
    """Read what `trace` wrote."""
    found = []
    *lines, last = out.read_text().splitlines()
    if last != COMPLETE:
        raise ValueError("what was traced is not complete")
    for line in lines:
        moment, caller, place, name = line.split(" ", 3)
        found.append((float(moment), caller, place, name))
    return found


def measure(*, verbose: bool) -> bool:
    """Print how many functions are on each way, and which if that is wanted.

    Returns:
        Whether each way is within its limit.
    """
    with tempfile.TemporaryDirectory() as folder, gemini() as fake:
        measured = Measured(Path(folder).resolve())
        measured.drive(fake)
        entries = read(measured.folder / "out")
    idle = measured.spans.pop("idle")

    def found(way: str, *, hops: bool) -> list[tuple[str, str]]:
        beside = set(within(entries, *idle, hops=hops))
        begin, end = measured.spans[way]
        called = (e for e in entries if begin <= e[0] and e[2].startswith("engine/"))
        asked = next((e[0] for e in called if e[1].startswith("store/")), end)
        shown = set(within(entries, begin, asked, hops=hops))
        of_way = on_way(way, within(entries, begin, end, hops=hops), shown)
        return [entry for entry in of_way if entry not in beside]

    print(f"{'':16} hops limit functions")
    is_within = True
    for way in measured.spans:
        hops, limit = found(way, hops=True), LIMITS[way]
        is_within = is_within and len(hops) <= limit
        print(f"{way:16} {len(hops):4} {limit:5} {len(found(way, hops=False)):9}", flush=True)
        if verbose:
            print("".join(f"    {place}  {name}\n" for place, name in hops))
    return is_within


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", folder]:
            serve(Path(folder))
        case ["trace", out]:
            trace(Path(out), [])
        case arguments:
            places = [argument for argument in arguments if argument != "-v"]
            checkout = str(Path(places[0]).resolve() if places else ROOT)
            os.environ["PYTHONPATH"] = checkout
            sys.path[:] = [checkout, *(p for p in sys.path if p not in (str(ROOT), checkout))]
            sys.exit(not measure(verbose="-v" in arguments))
