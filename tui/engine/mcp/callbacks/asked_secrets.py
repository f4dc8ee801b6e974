"""What forms must not ask for: passwords, keys, cards and papers, by one list of words."""

import re
import unicodedata
from typing import Final

from tui.text import INVISIBLE, LATIN_ALIKE

MAX_READ: Final = 4_000
"""Characters of a text that are looked through; no more are shown."""

_WORDS: Final = r"""
password*, passwd*, pass phrase*, pass word*, pass code*, pwd, secret*, credential*,
(?<!max\s)token, (api|access|private|signing|ssh|master|wallet) key*,
(seed|recovery|backup|secret|mnemonic) (phrase|word|key|code)*, mnemonic*,
pin, pin (code|number), cv[vc]\d?, cvn, card (number|code|verification)*,
(credit|debit|bank) card*, security code*, iban, (account|routing) number*, sort code,
ssn, social security*, passport*, national id*, (identity|id) (number|card)*,
tax (id|number)*, driv(er|ing).?s? licen[cs]e*, otp, totp,
(one time|verification|2fa|mfa|two factor) code*,

pass wort*, kennwort*, geheim*, (zugangs|anmelde) (daten|code)*, pin nummer*, tan, tan nummer*,
(privat|privat(er|en|e)|zugangs) schlue?ssel*,
(seed|wiederherstellungs) (wort|wo?e?rter|phrase|schlu|code)*, kredit karte*,
(karten|kreditkarten|konto|pass|ausweis|sozialversicherungs|steuer) (nummer|nr)*,
karten prue?f*, prue?f (nummer|ziffer)*, sicherheits code*, reise pass*,
(personal )?ausweis*, sozialversicherung*, steuer id*,

mots? de (passe|recuperation)*, phrase (de recuperation|mnemonique|secrete|de passe)*,
cle (privee|secrete|api|d.?acces)*, code (pin|secret|de securite|de verification)*,
cryptogramme*, carte (bancaire|de credit|bleue|d.?identite)*,
numero de (carte|compte|passeport|securite)*, passeport*, securite sociale*,

contrasena*, clave, (frase|palabras) (semilla|de recuperacion|secreta)*,
(codigo|numero) (pin|de seguridad|de verificacion|de tarjeta|de cuenta)*,
tarjeta de (credito|debito)*, pasaporte*, dni, seguridad social*, documento de identidad*
"""
"""English, German, French and Spanish words, in lower case and without accents. One with ``*``
may go on, and a blank may be missing. Rather one warning too many than one too few."""


def _pattern(word: str) -> str:
    end = "" if word.endswith("*") else r"\b"
    return rf"\b(?:{word.removesuffix('*').replace(' ', ' ?')}){end}"


_SECRET: Final = re.compile("|".join(_pattern(word.strip()) for word in _WORDS.split(",")))
_WORD_BREAK: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\s_.\-]+")
_UNSEEN: Final = dict.fromkeys(map(ord, INVISIBLE))
_DIGITS: Final = str.maketrans("013457$@", "oieastsa")
"""Signs that stand for letters, as in ``passw0rd``."""


def asks_for_secret(*texts: str) -> bool:
    """Return whether a name, a title or a description asks for a secret."""
    plain = [_plain(text[:MAX_READ]) for text in texts]
    return any(_SECRET.search(one) or _SECRET.search(one.translate(_DIGITS)) for one in plain)


def _plain(text: str) -> str:
    """Split a name into words in lower case, without accents or what cannot be seen.

    Letters of other alphabets that look like Latin ones are folded.
    """
    words = _WORD_BREAK.sub(" ", unicodedata.normalize("NFKC", text.translate(_UNSEEN)))
    letters = unicodedata.normalize("NFKD", words.casefold())
    return "".join(c for c in letters if not unicodedata.combining(c)).translate(LATIN_ALIKE)
