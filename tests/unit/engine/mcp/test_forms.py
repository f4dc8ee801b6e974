"""Forms: from requested schemas to fields, and from what was filled in to what is sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.asking import FORM
from tests.support.examples import any_json
from tests.support.rows import row
from tests.unit.engine.mcp.gemini_checker import LIST
from tui.engine.mcp.callbacks.elicitation import AnswerError, read_answer
from tui.engine.mcp.schema.form_schema import MAX_FIELDS, UnusableFormError, read_form
from tui.model.requests import FieldKind, FieldOption, FormField, FormValue

NAMES = [str(number) for number in range(500)]


def field_of(**definition: object) -> FormField:
    [field] = read_form({"properties": {"x": definition}}).fields
    return field


def answer_to(definition: dict[str, Any], value: FormValue, *, required: bool = True) -> object:
    form = read_form({"properties": {"x": definition}, "required": ["x"] if required else []})
    return read_answer(form, {"x": value}).get("x", "left out")


def problem_of(definition: dict[str, Any], value: FormValue) -> str:
    with pytest.raises(AnswerError) as caught:
        answer_to(definition, value)
    assert caught.value.field == field_of(**definition).key
    return str(caught.value)


def test_every_kind_of_field_is_read() -> None:
    form = read_form(FORM)
    fields = {field.title: field for field in form.fields}
    assert fields["Your name"].kind is FieldKind.TEXT
    assert (fields["Your name"].minimum, fields["Your name"].required) == (2, True)
    assert (fields["mail"].format, fields["mail"].default) == ("email", "a@example.com")
    assert (fields["age"].kind, fields["age"].maximum) == (FieldKind.INTEGER, 150)
    assert fields["size"].kind is FieldKind.NUMBER
    assert (fields["agree"].kind, fields["agree"].default) == (FieldKind.BOOLEAN, True)
    assert fields["colour"].options == (FieldOption("red", "red"), FieldOption("green", "green"))
    assert fields["shape"].options == (FieldOption("c", "Circle"),)
    assert (fields["days"].kind, fields["days"].maximum) == (FieldKind.CHOICES, 2)


def test_titled_choices_and_their_defaults_are_read() -> None:
    options = [{"const": "a", "title": "Ay"}, {"const": "b", "title": "Bee"}]
    several = field_of(type="array", items={"anyOf": options}, default=["b", "z"])
    assert several.options == (FieldOption("a", "Ay"), FieldOption("b", "Bee"))
    assert several.default == ("b",)
    assert field_of(type="string", oneOf=options, default="z").default is None
    legacy = field_of(type="string", enum=["a", "b"], enumNames=["Ay", "Bee"], default="a")
    assert (legacy.options, legacy.default) == (several.options, "a")


def test_a_field_that_may_be_null_is_not_required() -> None:
    schema = {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}], "default": None}
    form = read_form({"properties": {"x": schema}, "required": ["x"]})
    assert (form.fields[0].kind, form.fields[0].required) == (FieldKind.INTEGER, False)
    assert read_answer(form, {"x": None}) == {"x": None}
    assert read_answer(form, {"x": "3"}) == {"x": 3}
    assert field_of(type=["string", "null"]).kind is FieldKind.TEXT


def test_C08_a_field_that_seems_to_want_a_secret_is_marked() -> None:
    for name in [
        *("password", "apiKey", "api_key", "API-KEY", "clientSecret", "access_token", "Your PIN"),
        *("seedPhrase", "seed_phrase", "Recovery phrase", "recovery-words", "mnemonic"),
        *("cvv", "CVV2", "cvc", "cardNumber", "credit card", "PINCode", "private_key", "sshKey"),
        *("passport_number", "socialSecurityNumber", "ssn", "driver's license", "oneTimeCode"),
        *("Passwort", "Kreditkartennummer", "Prüfziffer", "Reisepass", "geheimer Schlüssel"),
        *("privater Schlüssel", "Wiederherstellungswörter", "Personalausweisnummer", "TAN"),
        *("mot de passe", "Clé privée", "phrase de récupération", "numéro de carte", "code PIN"),
        *("contraseña", "Número de tarjeta", "frase semilla", "clave privada", "backupCode"),
        "código de seguridad",
        *("pa\u200bssword", "ＰＩＮ"),  # noqa: RUF001 - hidden and wide letters
        *("s\u0435\u0435d phrase", "p\u0430ssword", "P\u0410SSW\u041eRD", "\u03a1IN"),
        *("passw0rd", "p@$$w0rd", "p1n", "cr3dit card", "\u0455ecr3t"),
        *("authtoken", "GITHUB_TOKEN", "user_pass", "pass", "Authorization", "jwt", "GPG key"),
        *("session cookie", "connectionString", "пароль", "请输入密码", "パスワード", "비밀번호"),
    ]:
        with row(name):
            [field] = read_form({"properties": {name: {"type": "string"}}}).fields
            assert field.asks_secret
            assert field_of(type="string", title=name).asks_secret


def test_D23_a_field_is_judged_by_its_kind_its_format_and_its_name() -> None:
    for name, schema, marked in [
        ("age", {"type": "integer", "description": "Do not give us your card's PIN."}, False),
        ("note", {"type": "string", "description": "Never a password or a token."}, False),
        ("value", {"type": "string", "description": "Paste your GitHub token here"}, True),
        ("value", {"type": "string", "description": "No spaces. Your password"}, True),
        ("password_length", {"type": "integer"}, False),
        ("has_password", {"type": "boolean"}, False),
        ("secret_kind", {"type": "string", "enum": ["password", "token"]}, False),
        ("card number share", {"type": "number"}, False),
        ("PIN", {"type": "integer"}, True),
        ("a", {"type": "integer", "title": "CVV"}, True),
        ("a", {"type": "string", "format": "password"}, True),
        ("a", {"type": ["string", "null"], "title": "API key"}, True),
        ("a", {"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]}, True),
    ]:
        with row(name):
            [field] = read_form({"properties": {name: schema}}).fields
            assert field.asks_secret is marked


def test_a_harmless_field_is_not_marked() -> None:
    for name in (
        *("name", "maxTokens", "pinned", "compass", "secretary_of", "seed", "cardinal", "account"),
        *("passenger", "zip code", "country_code", "key", "Branch", "passage", "Pinnwand", "cle"),
        *("\u043a\u043b\u044e\u0447", "\u0438\u043c\u044f", "2 of 5 at 10:45", "3d model"),
    ):
        [field] = read_form({"properties": {name: {"type": "string"}}}).fields
        assert field.asks_secret is (name == "secretary_of"), name  # rather once too often


def test_names_and_options_go_back_as_the_server_spells_them() -> None:
    schema = {
        "properties": {
            "raw\x1b[31m key": {"type": "string", "title": "[/x]\x1b]52;c;eA==\x07"},
            "raw key": {"type": "string"},
            "pick": {"type": "string", "enum": ["a\x07", "a␇"]},
        }
    }
    form = read_form(schema)
    first, second, pick = form.fields
    assert first.key == "raw key"
    assert second.key != first.key
    assert first.title == "[/x]"
    assert len({option.value for option in pick.options}) == 2
    answer = read_answer(form, {first.key: "1", second.key: "2", pick.key: pick.options[0].value})
    assert answer == {"raw\x1b[31m key": "1", "raw key": "2", "pick": "a\x07"}


def test_what_no_form_can_be_made_of_is_refused() -> None:
    rows: list[object] = [
        ["x"],
        {"x": 5},
        {"x": {"type": "object"}},
        {"x": {"type": "array", "items": {"type": "string"}}},
        *({"x": {"type": "string", "enum": names}} for names in ([], NAMES, ["a", "b" * 1_001])),
        {name: {"type": "string"} for name in NAMES[: MAX_FIELDS + 1]},
    ]
    for properties in rows:
        with row(properties), pytest.raises(UnusableFormError):
            read_form({"properties": properties})


def test_what_is_entered_gets_its_type() -> None:
    rows: list[tuple[dict[str, Any], FormValue, object]] = [
        ({"type": "string"}, " a ", " a "),
        ({"type": "string", "format": "email"}, "ä@b.example", "ä@b.example"),
        ({"type": "string", "format": "uri"}, "mailto:a@b", "mailto:a@b"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T09:00:00Z", "2026-02-28T09:00:00Z"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "abc"),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "integer"}, 7.0, 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "number"}, "-7", -7),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, False, False),
        ({"type": "string", "enum": ["a"]}, "a", "a"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ("b", "a", "b"), ["a", "b"]),
    ]
    for definition, entered, sent in rows:
        with row(definition):
            answer = answer_to(definition, entered)
            assert answer == sent
            assert type(answer) is type(sent)


def test_what_does_not_fit_is_named() -> None:
    rows: list[tuple[dict[str, Any], FormValue, str]] = [
        ({"type": "string"}, "", "is required"),
        ({"type": "string", "minLength": 3}, "ab", "At least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abcd", "At most 3 characters."),
        ({"type": "string", "format": "email"}, "a b@c", "such as name@"),
        ({"type": "string", "format": "uri"}, "example.com", "such as https:"),
        ({"type": "string", "format": "date"}, "2026-02-30", "such as 2026-07-28."),
        ({"type": "string", "format": "date"}, "20260228", "such as 2026-07-28."),
        ({"type": "string", "format": "date-time"}, "2026-02-28T09:00:00", "such as 2026-07-28T"),
        ({"type": "string", "format": "date-time"}, "2026-W09-6T09:00:00Z", "such as 2026-07-28T"),
        ({"type": "string", "format": "date-time"}, "2026-02-28T09Z", "such as 2026-07-28T"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "ABC", "does not match ^[a-z]+$."),
        ({"type": "integer"}, "7.5", "a whole number"),
        ({"type": "integer"}, True, "a whole number"),
        ({"type": "integer", "minimum": 8}, 7, "At least 8."),
        ({"type": "number", "maximum": 8}, "8.1", "At most 8."),
        ({"type": "number"}, "nan", "Enter a number."),
        ({"type": "number"}, "1e999", "Enter a number."),
        ({"type": "number"}, "9" * 9_000, "Enter a number."),
        ({"type": "boolean"}, "perhaps", "yes or no"),
        ({"type": "string", "enum": ["a"]}, "b", "from the options"),
        ({"type": "array", "items": {"enum": ["a"]}}, ("b",), "from the options"),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 1}, (), "is required"),
        (LIST | {"items": {"enum": ["a", "b"]}, "maxItems": 1}, ("a", "b"), "At most 1 option."),
    ]
    for definition, entered, problem in rows:
        assert problem in problem_of(definition, entered), definition


def test_empty_fields_are_left_out_and_missing_ones_keep_their_default() -> None:
    assert answer_to({"type": "string"}, "", required=False) == "left out"
    form = read_form({"properties": {"x": {"type": "integer", "default": 4}}})
    assert read_answer(form, {}) == {"x": 4}
    assert read_answer(form, {"x": None}) == {}


def test_a_pattern_that_could_run_for_ever_is_not_tried() -> None:
    text = "a" * 61 + "!"
    assert answer_to({"type": "string", "pattern": "^(a|aa)+$"}, text) == text


json_values = any_json(st.text(max_size=8)) | st.floats()
words = "type enum oneOf anyOf items default title format minimum".split()  # noqa: SIM905
kinds = st.sampled_from(["string", "integer", "array", "boolean"])
definitions = st.dictionaries(st.sampled_from(words), kinds | json_values)


@given(st.dictionaries(st.text(max_size=5), definitions, max_size=3), json_values)
def test_all_that_comes_is_a_form_or_refused(properties: dict[str, Any], required: object) -> None:
    try:
        form = read_form({"properties": properties, "required": required})
    except UnusableFormError:
        return
    assert len({field.key for field in form.fields}) == len(properties)
    for field in form.fields:
        assert "\x1b" not in field.title + field.description + field.key
