"""Requests of servers to show."""

from tui.model.chat import EntryId
from tui.model.consent import RequestId
from tui.model.requests import (
    FieldKind,
    FieldOption,
    FormField,
    FormRequest,
    ResultReview,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    SignInRequest,
    UrlRequest,
)
from tui.model.servers import ServerId

EVERYTHING = ServerId("everything")
FORM_ID = RequestId("form")

COLOURS = (FieldOption("r", "Red"), FieldOption("g", "Green"), FieldOption("b", "Blue"))

FIELDS = (
    FormField("name", FieldKind.TEXT, "Name", "Your full name.", required=True, minimum=2),
    FormField("mail", FieldKind.TEXT, "Mail", format="email"),
    FormField("age", FieldKind.INTEGER, "Age", default=30, minimum=18, maximum=120),
    FormField("share", FieldKind.NUMBER, "Share", minimum=0, maximum=1),
    FormField("news", FieldKind.BOOLEAN, "Newsletter", default=True),
    FormField("colour", FieldKind.CHOICE, "Colour", options=COLOURS, default="g", required=True),
    FormField(
        "tags", FieldKind.CHOICES, "Tags", options=COLOURS, default=("r",), minimum=1, maximum=2
    ),
    FormField("password", FieldKind.TEXT, "Password", asks_secret=True),
)


def form(
    fields: tuple[FormField, ...] = FIELDS,
    *,
    problem: str = "",
    wrong: str = "",
    message: str = "Please tell us who you are, so that the booking can be made.",
    request: RequestId = FORM_ID,
) -> FormRequest:
    return FormRequest(request, EVERYTHING, message, fields, problem, wrong)


def sign_in(*, url: str = "", problem: str = "", notes: tuple[str, ...] = ()) -> SignInRequest:
    parameters = "response_type=code&client_id=client-17&state=N0tRe4lJustALongState"
    return SignInRequest(
        RequestId("sign-in"),
        EVERYTHING,
        "https://events.example.com/mcp",
        "login.example.com",
        "login.example.com",
        "https://login.example.com",
        "https://events.example.com/mcp",
        ("events.read", "offline_access"),
        url or f"https://login.example.com/authorize?{parameters}",
        "tokens.example.net",
        notes,
        "the system keyring",
        problem,
    )


def address(
    *,
    url: str = "https://xn--pple-43d.example/connect?state=" + "abc123" * 30,
    warning: str = "The host is written with letters of another script.",
    message: str = "Connect your account to go on.",
) -> UrlRequest:
    return UrlRequest(
        RequestId("url"),
        EVERYTHING,
        message,
        url,
        "xn--pple-43d.example",
        "аpple.example",  # noqa: RUF001 - the look-alike is the point
        warning,
    )


def sampling(*messages: SamplingMessage, system: str = "You are terse.") -> SamplingRequest:
    return SamplingRequest(
        RequestId("sampling"),
        EVERYTHING,
        system,
        messages
        or (
            SamplingMessage("user", "Summarise this file for me."),
            SamplingMessage("user", "(picture, image/png, 12 kB)"),
        ),
        1_000,
        "gemini-flash",
        ("claude-3-sonnet", "gpt"),
        ("echo",),
    )


def result(text: str = "One note.\nAnother.", *media: str) -> ResultReview:
    return ResultReview(RequestId("result"), EntryId("e1"), EVERYTHING, "list_notes", text, media)


def review(text: str = "It is about cats.\nAnd dogs.") -> SamplingReview:
    return SamplingReview(RequestId("review"), EVERYTHING, text, "gemini-flash")
