"""Text of servers, models and files is never parsed as markup."""

from pathlib import Path
from typing import Final

from tests.architecture.sinks import find_violations, python_sources

UI: Final = Path(__file__).resolve().parents[2] / "tui" / "ui"

EXEMPT: Final = {
    ("bridge.py", "update", "state"): "a watch of the bridge takes a snapshot, not a text",
    ("widgets/text/plain.py", "update", "content"): "a `PlainText` never reads markup",
}
"""Findings that are none, each with the reason."""

VIOLATIONS: Final = {
    "a parameter": "def f(x: str): return Static(x)",
    "an attribute": "def f(x): return Label(x.name)",
    "an f-string": 'def f(x): return Button(f"run {x}")',
    "an addition": 'def f(x): return Static("a" + x)',
    "a join": 'def f(x): return Static(", ".join(x))',
    "a variable": "def f(x):\n    y = x.name\n    return Static(y)",
    "one branch": 'def f(x): return Static("a" if x else x)',
    "an option list": "def f(x): return OptionList(*[i.name for i in x])",
    "a notification": "class S(Screen):\n    def f(self, x): self.notify(x)",
    "a border title": "class S(Widget):\n    def f(self, x): self.border_title = x",
    "a tooltip": "class S(Widget):\n    def f(self, x): self.tooltip = x",
    "an update": "class S(Static):\n    def f(self, x): self.update(x)",
    "an update of a child": "class S(Page):\n    def f(self, x): self.query_one(Label).update(x)",
    "an update of an attribute": (
        "class S(Widget):\n"
        "    def __init__(self): self._line = Label()\n"
        "    def f(self, x): self._line.update(x)"
    ),
    "an update of something unknown": "def f(a, x): a.update(x)",
    "a tree label": "def f(x): return Tree(x)",
    "a branch": "class S(Tree):\n    def f(self, x): self.root.add(x)",
    "a new label": "def f(node, x): node.set_label(x.name)",
    "a row": 'def f(table, x): table.add_row("a", x)',
    "a cell": 'def f(table, x): table.update_cell("a", "b", x)',
    "a palette entry": "def f(x): return DiscoveryHit(x.name, x.run)",
    "markup made of text": "def f(x): return Static(Content.from_markup(x))",
    "markup by the back door": "def f(x): return Static(Content.from_text(x))",
    "markup switched on": "def f(x): return RichLog(markup=True)",
    "render": "class W(Widget):\n    def render(self): return self.x",
    "a subclass": "class Line(Static):\n    pass\ndef f(x): return Line(x)",
    "a call of the base": (
        "class Line(Static):\n    def __init__(self, x): super().__init__(x.name)"
    ),
    "a helper that gives a string": "def g(x) -> str: return x\ndef f(x): return Static(g(x))",
    "a constant made of calls": "LINES = load()\ndef f(): return Static(LINES)",
}

ALLOWED: Final = {
    "a literal": 'def f(): return Static("[b]ours[/b]")',
    "content": "def f(x): return Static(Content(x))",
    "rich text": "def f(node, x): node.add_leaf(Text(x))",
    "assembled": 'def f(x): return Label(Content.assemble(("a", "bold"), x))',
    "substituted": 'def f(x): return Label(Content.from_markup("[b]$x[/b]", x=x))',
    "styled by a method": 'def f(x): return Label(Content(x).stylize("bold"))',
    "styled in a loop": (
        "def f(x):\n    c = Content(x)\n    for i in x: c = c.stylize(i)\n    return Static(c)"
    ),
    "joined": 'def f(x): return Static(Content("\\n").join([Content(i) for i in x]))',
    "without markup": "def f(x): return Static(x, markup=False)",
    "a notification without markup": (
        "class S(Screen):\n    def f(self, x): self.notify(x, markup=False)"
    ),
    "a literal class": (
        "class PlainText(Static):\n"
        "    def __init__(self, x): super().__init__(x, markup=False)\n"
        "class S(Widget):\n"
        "    def f(self, x): self.query_one(PlainText).update(x)\n"
        "    def g(self, x): return PlainText(x)"
    ),
    "a helper": "def g(x) -> Content: return Content(x)\ndef f(x): return Static(g(x))",
    "a parameter that is content": "def f(x: Content | None): return Static(x)",
    "a constant": 'EMPTY = "nothing"\ndef f(): return Static(EMPTY)',
    "a table of constants": 'WORDS = {1: "one"}\ndef f(x): return Static(WORDS[x])',
    "a set": "def f(seen, x): seen.add(x)",
    "a class of ours": (
        "class Watch:\n    def update(self, x): ...\ndef f(x):\n    w = Watch()\n    w.update(x)"
    ),
    "options": "def f(x): return OptionList(*[Option(Content(i)) for i in x])",
    "a namesake": "class Link:\n    def __init__(self, u): self.u = u\ndef f(u): return Link(u)",
}


def test_no_bare_string_reaches_a_sink_and_every_exemption_is_used() -> None:
    found = {(one.path, one.sink, one.argument): one for one in find_violations(python_sources(UI))}
    others = [str(one) for place, one in found.items() if place not in EXEMPT]
    assert not others, "\n" + "\n".join(others)
    assert set(EXEMPT) <= found.keys()


def test_a_planted_violation_is_found_and_a_safe_form_left_alone() -> None:
    planted = {**VIOLATIONS, **ALLOWED}
    found = {name: len(find_violations([("planted.py", planted[name])])) for name in planted}
    assert found == {**dict.fromkeys(VIOLATIONS, 1), **dict.fromkeys(ALLOWED, 0)}


def test_classes_are_known_across_modules() -> None:
    base = (
        "plain.py",
        "class Plain(Static):\n    def __init__(self, x): super().__init__(x, markup=False)",
    )
    user = ("user.py", "class Line(Plain):\n    def f(self, x): self.update(x)")
    assert find_violations([base, user]) == []
    assert find_violations([user, ("other.py", "class Plain(Static):\n    pass")])
