"""Who hears of what, and when."""

from tests.support.samples import RECORDED, SERVER, one_of_each, populated_state
from tui.model import events as e
from tui.model.chat import Severity
from tui.model.consent import RequestId
from tui.model.servers import ServerStatus
from tui.store.state import AppState
from tui.store.store import Store

READY = e.ServerStatusChanged(SERVER, ServerStatus.READY)


def notice(text: str) -> e.NoticeRaised:
    return e.NoticeRaised(e.Notice(Severity.INFO, text))


def test_a_listener_gets_each_new_snapshot() -> None:
    store = Store(populated_state())
    heard: list[AppState] = []
    store.listen(heard.append)
    store.dispatch(notice("one"))
    store.dispatch(notice("two"))
    assert [len(state.notices) for state in heard] == [1, 2]
    assert heard[-1] is store.state


def test_nobody_hears_of_an_event_that_changes_nothing() -> None:
    store = Store(populated_state())
    heard: list[AppState] = []
    store.listen(heard.append)
    store.dispatch(e.RequestSettled(RequestId("unknown")))
    assert heard == []


def test_a_store_starts_empty() -> None:
    assert Store().state == AppState()


def test_who_unsubscribed_hears_no_more() -> None:
    store = Store()
    heard: list[AppState] = []
    unsubscribe = store.listen(heard.append)
    store.dispatch(notice("one"))
    unsubscribe()
    unsubscribe()
    store.dispatch(notice("two"))
    assert len(heard) == 1


def test_who_is_unsubscribed_by_another_listener_hears_no_more() -> None:
    store = Store()
    heard: list[AppState] = []
    store.listen(lambda _: unsubscribe())
    unsubscribe = store.listen(heard.append)
    store.dispatch(notice("one"))
    assert heard == []


def test_a_listener_that_dispatches_does_not_turn_the_order_round() -> None:
    store = Store()
    heard: list[int] = []

    def answer(state: AppState) -> None:
        if len(state.notices) == 1:
            store.dispatch(notice("two"))

    store.listen(answer)
    store.listen(lambda state: heard.append(len(state.notices)))
    store.dispatch(notice("one"))
    assert heard == sorted(heard)
    assert heard[-1] == 2


def test_every_event_can_be_dispatched() -> None:
    for event in one_of_each().values():
        store = Store(populated_state())
        heard: list[AppState] = []
        store.listen(heard.append)
        store.dispatch(event)
        assert heard == ([] if isinstance(event, RECORDED) else [store.state])
