"""The data classes that users run behave as the standard library's, which the tests run with."""

import dataclasses
from dataclasses import FrozenInstanceError, field, replace
from unittest.mock import ANY

import pytest

from tui.model import frozen
from tui.model.frozen import Frozen
from tui.model.servers import Failure

with pytest.MonkeyPatch.context() as as_shipped:
    as_shipped.setattr(frozen, "make", frozen._fast)

    class Point(Frozen):
        x: int
        y: int = 0
        note: str = field(default="", compare=False)
        secret: str = field(default="s", repr=False)

    class Named(Point):
        name: str = ""

    class Empty(Frozen):
        pass

    class Own(Frozen, kw_only=True):
        path: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            return "own"


def test_what_is_equal_has_the_same_class_and_fields() -> None:
    other = Point(1, 2, "another note")
    assert (Point(1, 2), hash(Point(1, 2))) == (other, hash(other))
    assert Point(1, 2) not in (Point(2, 1), Named(1, 2), (1, 2, "s"))
    assert Named(1, name="a") != Named(1, name="b")
    assert (Point(1), {Empty()}) == (ANY, {Empty()})


def test_it_is_shown_and_replaced_field_by_field() -> None:
    assert repr(Named(1, name="a")) == "Named(x=1, y=0, note='', name='a')"
    assert (repr(Empty()), replace(Named(1, name="a"), y=3)) == ("Empty()", Named(1, 3, name="a"))
    assert [one.name for one in dataclasses.fields(Point)] == ["x", "y", "note", "secret"]
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_methods_of_a_class_itself_are_kept() -> None:
    own = Own(path="a")
    assert (own, repr(own), hash(own)) == (Own(path="b"), "own", 1)


def test_it_has_slots_alone_and_its_methods_are_shared_so_that_a_class_is_made_fast() -> None:
    assert not hasattr(Point(1), "__dict__")
    with pytest.raises(AttributeError):
        object.__setattr__(Point(1), "z", 1)
    for name in ("__eq__", "__hash__", "__repr__"):
        assert getattr(Point, name) is getattr(Empty, name)
    assert "__setattr__" not in Point.__dict__


def test_in_the_tests_nobody_sets_a_field_of_the_models() -> None:
    problem = Failure("it ended")
    with pytest.raises(FrozenInstanceError):
        problem.reason = "it runs"  # type: ignore[misc]
