"""Names of languages as corpora write them: in header lines, JSON keys and TMX attributes."""

import re
from typing import TypeAlias

from jumok.errors import InputError

Languages: TypeAlias = tuple[str, str]

# ISO 639-1, and the three-letter codes most often met.
_CODE_LIST = """
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en
    eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja
    jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb
    nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq
    sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu ara ces
    cmn deu ell eng fin fra heb hin hun ind ita jpn kor nld pol por rus spa swe tha tur ukr vie zho
"""
_CODES = frozenset(_CODE_LIST.split())
_CODE_WITH_REGION = re.compile(r"([a-z]{2,3})[-_]\w{2,8}", re.IGNORECASE)


def is_language_code(name: str) -> bool:
    """Whether it is a code such as `en`, `EN`, `eng`, `en-US` or `kor_Hang`; `No` or `It` are probably sentences."""
    region = _CODE_WITH_REGION.fullmatch(name)
    code = region[1] if region else name
    return (code.islower() or code.isupper()) and code.lower() in _CODES


def same_language(found: str, wanted: str) -> bool:
    """Whether a language is the wanted one: `en` matches `en`, `EN-us` and `en_GB`; `en-US` only itself."""
    found, wanted = found.lower().replace("_", "-"), wanted.lower().replace("_", "-")
    return found == wanted or found.startswith(wanted + "-")


def only_two(found: list[str], where: str) -> Languages:
    """The two languages of the first record, for all records: later ones may name them in another order."""
    if len(found) != 2:
        raise InputError(
            f'{where}: {len(found)} languages ({", ".join(found)}); say which two are meant: `languages=("en", "ko")`.'
        )
    return found[0], found[1]
