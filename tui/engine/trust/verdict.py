"""What there is to judge of an opened folder, what was answered, and the verdict: data alone."""

from collections.abc import Hashable, Mapping
from dataclasses import field, replace

from tui.engine.settings.project import ProjectOffer, ProjectRules
from tui.engine.trust.content import FolderContent
from tui.engine.trust.folder_identity import FolderIdentity
from tui.engine.trust.own_servers import KnownServer
from tui.model.frozen import Frozen
from tui.model.servers import ServerId
from tui.model.trust import Boxes, FolderTrust, TrustAnswer


class Seen(Frozen):
    """An opened folder as it was read.

    Attributes:
        identity: Which folder; None if it cannot be looked at.
        offer: What it says; None if its files were not read.
        content: The same as it is shown, compared and kept.
        refusal: Why trust in it counts in this run alone, or "".
        named: Whether the command line trusts it with this content.
        attended: Whether there is a user to ask. Where there is none, only the command line's
            word or a yes to exactly this makes a folder trusted; what was forbidden stays so.
        in_force: What it forbade when it was trusted last in this run.
        needs: Why servers of the user need it, for those that do.
    """

    identity: FolderIdentity | None = None
    offer: ProjectOffer | None = None
    content: FolderContent | None = None
    refusal: str = ""
    named: bool = False
    attended: bool = True
    in_force: ProjectRules = ProjectRules()
    needs: Mapping[ServerId, str] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """What tells its content from other content, or ""."""
        return self.content.hash if self.content is not None else ""

    @property
    def key(self) -> tuple[object, ...]:
        """What an answer is about: this folder with this content."""
        return (*(self.identity.key if self.identity is not None else ()), self.hash)


class Answered(Frozen):
    """What the user answered in this run.

    Attributes:
        said: The answers, by the `Seen.key` of the opened folder, or by a new server of the
            settings.
        withdrawn: Whether trust in the opened folder was taken back, and not given again.
        review: Whether the user asked for the question about the folder.
        boxes: How its servers run, as chosen with the last answer.
    """

    said: Mapping[Hashable, TrustAnswer] = field(default_factory=dict)
    withdrawn: bool = False
    review: bool = False
    boxes: Boxes = Boxes.IF_POSSIBLE

    def about(
        self, key: Hashable, answer: TrustAnswer, boxes: Boxes = Boxes.IF_POSSIBLE
    ) -> "Answered":
        """Add an answer about the folder."""
        if answer is TrustAnswer.NEVER:
            return self.taken_back(key, answer)
        withdrawn = self.withdrawn and not answer.allows
        return Answered({**self.said, key: answer}, withdrawn, boxes=boxes)

    def taken_back(self, key: Hashable, answer: TrustAnswer = TrustAnswer.NOT_NOW) -> "Answered":
        """Take every yes to the folder back."""
        kept = (one for one in self.said if isinstance(one, KnownServer))
        return Answered({**{one: self.said[one] for one in kept}, key: answer}, withdrawn=True)

    def reviewing(self) -> "Answered":
        """Let everything that has no yes be asked about again, and the folder in any case."""
        yes = {key: said for key, said in self.said.items() if said.allows}
        return replace(self, said=yes, review=True)


class FolderVerdict(Frozen):
    """What counts of a folder.

    Attributes:
        trust: The word.
        servers: Those of its servers that may run.
        context: Those of its files that the model gets, by their places.
        rules: What it forbids.
        inside: Whether the user's own servers start in it.
        asks: Whether there is something to ask the user.
        source: What trust rests on beside the user's own answers, or "".
        boxes: How its servers run.
    """

    trust: FolderTrust = FolderTrust.UNTRUSTED
    servers: frozenset[ServerId] = frozenset()
    context: frozenset[str] = frozenset()
    rules: ProjectRules = ProjectRules()
    inside: bool = False
    asks: bool = False
    source: str = ""
    boxes: Boxes = Boxes.IF_POSSIBLE
