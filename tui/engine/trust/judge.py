"""Which of an opened folder's settings count, and whether the user's servers start in it."""

from dataclasses import replace
from typing import Final

from tui.engine.settings.project import ProjectRules
from tui.engine.trust.trust_store import Standing
from tui.engine.trust.verdict import Answered, FolderVerdict, Seen
from tui.model.servers import ServerId
from tui.model.trust import Boxes, FolderTrust, TrustAnswer

FROM_ABOVE: Final = "trust in a folder above"
NAMED: Final = "--trust-folder"
_IF_POSSIBLE: Final = Boxes.IF_POSSIBLE
_WAITING: Final = frozenset({FolderTrust.UNTRUSTED, FolderTrust.CHANGED})


def judge(seen: Seen, record: Standing, answered: Answered) -> FolderVerdict:
    """Decide what counts of a folder.

    Args:
        seen: The folder as it was read.
        record: What the user said of it in earlier runs, or for this run alone.
        answered: What the user said in this run, which comes first.
    """
    verdict = _verdict(seen, record, answered)
    is_due = verdict.trust in _WAITING and seen.key not in answered.said
    asks = seen.content is not None and (answered.review or is_due)
    own = record.record.boxes if record.record is not None and not record.swapped else _IF_POSSIBLE
    return replace(verdict, asks=asks, boxes=answered.boxes if seen.key in answered.said else own)


def _verdict(seen: Seen, record: Standing, answered: Answered) -> FolderVerdict:
    content, offer, said = seen.content, seen.offer, answered.said.get(seen.key)
    is_yes = said is not None and said.allows
    if said is TrustAnswer.NEVER or (record.never and not is_yes):
        return FolderVerdict(FolderTrust.NEVER)
    if content is None or offer is None:
        return FolderVerdict()
    before = record.content
    # what was forbidden with the user's yes holds until a change of it got one as well
    rules = before.forbidden if before is not None else seen.in_force
    rules = ProjectRules() if answered.withdrawn else rules
    says_nothing = offer.is_empty and not rules.words()
    waiting = FolderTrust.NOTHING_TO_TRUST if says_nothing else FolderTrust.UNTRUSTED
    everything = FolderVerdict(
        FolderTrust.TRUSTED,
        frozenset(ServerId(one.name) for one in content.servers),
        frozenset(one.place for one in content.context),
        content.forbidden,
        inside=True,
    )
    if is_yes:
        return everything
    if answered.withdrawn:
        return FolderVerdict(waiting)
    if seen.named:
        return replace(everything, source=NAMED)
    if record.covered and seen.attended and not seen.refusal:
        return replace(everything, source=FROM_ABOVE)
    had_yes = record.record is not None and bool(record.record.hashes)
    is_yes_here = had_yes and (record.for_now or not seen.refusal)
    if not is_yes_here or (record.swapped and says_nothing):
        return FolderVerdict(waiting, rules=rules)
    if record.has(content.hash) or says_nothing:
        return everything
    changed = FolderVerdict(FolderTrust.CHANGED, rules=rules, inside=not record.swapped)
    if record.swapped or before is None or not seen.attended:
        return changed
    servers = {one.hash for one in before.servers}
    context = {(one.place, one.hash) for one in before.context}
    return replace(
        changed,
        servers=frozenset(ServerId(s.name) for s in content.servers if s.hash in servers),
        context=frozenset(c.place for c in content.context if (c.place, c.hash) in context),
    )
