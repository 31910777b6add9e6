"""Names of languages as corpora write them: in header lines, JSON keys and TMX attributes."""

import re
from typing import TypeAlias

from jumok.data.reading.language_names import CODES, NAMES
from jumok.errors import InputError

Languages: TypeAlias = tuple[str, str]

_CODE_WITH_REGION = re.compile(r"([a-z]{2,3})[-_](\w{2,8}(?:[-_]\w{2,8})?)", re.IGNORECASE)


def is_language_code(name: str) -> bool:
    """Whether it is a code such as `en`, `EN`, `eng`, `en-US` or `kor_Hang`; `No` or `It` are probably sentences."""
    region = _CODE_WITH_REGION.fullmatch(name)
    code = region[1] if region else name
    return (code.islower() or code.isupper()) and code.lower() in CODES


def language_tag(name: str) -> str | None:
    """The language that a code or a name stands for, with its region: `en` for `English`, `eng` and `EN`, `en-us` for
    `en_US` and `eng-us`; None if it is neither a code nor a name that is known."""
    if is_language_code(name):
        region = _CODE_WITH_REGION.fullmatch(name)
        return CODES[region[1].lower()] + "-" + region[2].lower().replace("_", "-") if region else CODES[name.lower()]
    return NAMES.get(" ".join(name.lower().split()))


def same_language(found: str, wanted: str) -> bool:
    """Whether a language is the wanted one: `en` matches `en`, `eng`, `English`, `EN-us` and `en_GB`; `en-US` only
    itself."""
    found = language_tag(found) or found.lower().replace("_", "-")
    wanted = language_tag(wanted) or wanted.lower().replace("_", "-")
    return found == wanted or found.startswith(wanted + "-")


def only_two(found: list[str], where: str) -> Languages:
    """The two languages of the first record, for all records: later ones may name them in another order."""
    if len(found) != 2:
        example = f'`languages=("{found[0]}", "{found[1]}")`' if len(found) > 1 else '`languages=("en", "ko")`'
        raise InputError(f"{where}: {len(found)} languages ({', '.join(found)}); say which two are meant: {example}.")
    return found[0], found[1]
