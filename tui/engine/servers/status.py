"""The status of one server, which moves only along the table of transitions."""

from tui.model.servers import TRANSITIONS, ServerStatus


class IllegalTransition(Exception):  # noqa: N818  # it names the event; only a bug raises it
    """A server was about to move to a status that cannot follow its present one."""

    def __init__(self, current: ServerStatus, following: ServerStatus) -> None:
        super().__init__(f"{following.value!r} cannot follow {current.value!r}")


def advance(current: ServerStatus, following: ServerStatus) -> ServerStatus:
    """Give the following status.

    Raises:
        IllegalTransition: If `tui.model.servers.TRANSITIONS` does not hold this step.
    """
    if following not in TRANSITIONS[current]:
        raise IllegalTransition(current, following)
    return following
