"""Where the sentences of a text end, in the punctuation of its script. Needs no model.

In doubt there is no end: a model that sees two sentences at once may still translate both, one that sees half of a
sentence cannot. A text without any end is one sentence.
"""

import re
from collections.abc import Iterator

# Han and Kana, with their punctuation: no space between sentences.
UNSPACED = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"
CLOSING = r"\"'”’»›)\]}〉》」』】）］"
_OPENING = r"\"'“‘„‚«‹(\[{〈《「『【（［¿¡–—-"
_HANGUL = "\uac00-\ud7a3"

# Ends in any case: Chinese and Japanese, Hindi, Arabic, Urdu, Armenian, Ethiopic, Myanmar, Khmer.
_ALWAYS = "。！？｡．।॥؟۔։።፧፨။។៕"
# Ends if white space follows.
_BEFORE_SPACE = ".!?…‥‼⁇⁈⁉‽"
ENDS = _ALWAYS + _BEFORE_SPACE

_MARK = re.compile(rf"[{ENDS};፡]")  # quick to find
_END = re.compile(
    # German closes with “; French puts a space before its closing mark: « Il pleut. »
    rf"[{ENDS}]+[{CLOSING}“‘]*(?:[ \u00a0\u202f][»›])?(?=\s)"
    # A quotation that ends and is not followed by a space is a part of its sentence: 「なぜ？」と言った。
    rf"|(?<![0-9０-９](?=．[0-9０-９]))[{_ALWAYS}][{ENDS}]*+(?![{CLOSING}])"
    rf"|[{_ALWAYS}][{ENDS}]*+[{CLOSING}]+(?=[「『《“])"
    r"|፡፡"
    # Between Korean or Chinese characters a full stop needs no space either: it is in no number and no address.
    rf"|(?<=[{_HANGUL}{UNSPACED}])(?:\.(?!\.)|[!?]++)(?=[{_HANGUL}{UNSPACED}])(?![{CLOSING}])"
    # The space was forgotten, as in "It rains.We stay."; what follows must be a word that begins sentences.
    r"|(?<=[^\W\d_]{2})[.!?]++(?=[^\W\d_]+[ ’'])"
    # The Greek question mark
    r"|(?<=[\u0370-\u03ff\u1f00-\u1fff]);(?=\s)"
)
_WORD = re.compile(r"[^\s(\[{\"“‘«„']+(?:'[^\s(\[{\"“‘«„']+)*$")
_NEXT_CHARACTER = re.compile(rf"[\s{_OPENING}]*+(\S)")
_NEXT_WORD = re.compile(rf"[\s{_OPENING}]*+([^\W\d_]+)(?!\.)")
_CJK = re.compile(f"[{_HANGUL}{UNSPACED}]")
_LETTER = re.compile(r"[^\W\d_]")
_LONGEST_WORD = 24  # characters before a full stop that are looked at
_DATE = re.compile(r"\s*\d+\.")  # after a number: 2026. 11. 17.

# A full stop after these never ends a sentence: a name, or the rest of the phrase, follows.
_TITLE_LIST = """
    mr mrs ms dr prof st sr jr rev capt lt cpl sgt messrs mt pvt vs cf al hr fr frl hl dipl ing bzw ggf evtl inkl zzgl
    exkl vgl sog geb mme mlle mlles mgr dott sig sigg sra srta sres dña dra dras dhr mevr tzv tzn resp
"""
# After these it ends a sentence only if a word follows that often begins one.
_ABBREVIATION_LIST = """
    gen col maj adm hon gov sen rep etc nos fig figs eq ed eds inc ltd corp co dept est approx ave blvd rd jan feb apr
    jun jul aug sep sept oct nov dec usw abs bsp str tel jh mio mrd tsd av bd env núm pág apdo
"""
# After these it does not end one if a number follows.
_COUNTED_LIST = """
    no nr nos vol vols p pp art abs sec ch chap fig figs eq pos par ca approx max min bd kap tel num núm pág n
"""
# In these languages 3. is the third; so it may be where the language is not known.
_ORDINALS_LIST = "bs cs da de et eu fi fo hr hu is ko lb lt lv mk nb nn no pl sk sl sr tr"
# Frequent first words that are hardly ever names or, after an abbreviation, the rest of a sentence.
_FIRST_WORD_LIST = """
    the a an this that these those he she it they we you i there here his her their our my your its but and so if when
    then what who how why where which now also however after before while because although some all no not do don't
    did can could would let is are was
    der die das den dem des ein eine einen einem einer er sie es wir ihr ich du man mein meine sein seine ihre unser
    und aber dann da dort hier wenn als was wer wie warum wo auch im am in auf nach vor danach doch weil nicht kein
    le la les un une il elle ils elles nous vous je tu on ce cet cette ces c'est mais et puis quand si dans pour
    pourquoi comment où qui que mon ma mes son sa ses leur
    el los las una unos él ella ellos ellas yo tú usted nosotros pero y cuando en para por qué cómo dónde quién mi su
    lo gli uno lui lei noi voi io ma e quando nel come dove chi perché questo questa
    o os as um uma ele ela eles elas eu nós mas quando em como onde quem meu minha seu sua
    het een hij zij wij ik jij dit dat deze maar en toen als
    он она оно они мы вы я ты это но и а когда если как что где кто почему
"""
_TITLES, _ABBREVIATIONS, _COUNTED, _ORDINALS, _FIRST_WORDS = (
    frozenset(words.split())
    for words in (_TITLE_LIST, _ABBREVIATION_LIST, _COUNTED_LIST, _ORDINALS_LIST, _FIRST_WORD_LIST)
)
_SHORT_FORM = re.compile(r"[^\W\d_]|([^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # J, U.S, e.g, Ph.D
_NUMBER = re.compile(r"\d{1,2}")


def sentence_ends(text: str, language: str | None = None) -> list[int]:
    """The indices behind the sentences of a text, but the last. `language` is a code such as "de", if it is known."""
    first = _LETTER.search(text)
    if first is None:
        return []
    capitals = not _is_small(first[0])  # whether this text begins its sentences with capitals
    ends: list[int] = []
    begin = 0
    for match in _matches(text):
        # Without a letter, a part is a number in a list, or dots: no sentence of its own.
        if _LETTER.search(text, begin, match.start()) is None or _LETTER.search(text, match.end()) is None:
            continue
        if _ends_sentence(text, match, capitals, language):
            begin = match.end()
            ends.append(begin)
    return ends


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Every place where a sentence may end."""
    mark = _MARK.search(text)
    while mark:
        match = _END.match(text, mark.start())
        if match:
            yield match
        mark = _MARK.search(text, (match or mark).end())


def _ends_sentence(text: str, match: re.Match[str], capitals: bool, language: str | None) -> bool:
    mark = match[0]
    if mark[0] in _ALWAYS or mark == "፡፡":
        return True
    following = _NEXT_CHARACTER.match(text, match.end())
    assert following  # a letter follows
    is_small = _is_small(following[1])
    if is_small and (capitals or mark[-1] in CLOSING or "…" in mark or ".." in mark):  # "Stop!" he said.
        return False
    if mark[0] == ";":
        return following[1].isupper()
    word = _WORD.search(text[max(0, match.start() - _LONGEST_WORD) : match.start()])
    begins = _begins_sentence(text, match.end())
    if not text[match.end()].isspace() and not _CJK.match(following[1]):
        return begins and following[1].isupper() and word is not None and word[0].isalpha() and word[0][-1].islower()
    if mark != "." or word is None or _CJK.match(word[0]):
        return True
    return _word_ends(word[0].lower(), text, match.end(), begins, language)


def _word_ends(word: str, text: str, end: int, begins: bool, language: str | None) -> bool:
    """Whether a full stop behind this word, in small letters, ends its sentence."""
    number_follows = text[end:].lstrip()[:1].isdigit()
    if word in _TITLES or (number_follows and (word in _COUNTED or word.endswith("str"))):  # Hauptstr. 5
        return False
    if word.isdigit() and _DATE.match(text, end):
        return False
    if _NUMBER.fullmatch(word):
        return begins or not (language is None or language in _ORDINALS)
    if word in _ABBREVIATIONS or _SHORT_FORM.fullmatch(word):
        return begins
    return True


def _begins_sentence(text: str, index: int) -> bool:
    """Whether the word at this index often begins a sentence, and does here: with a capital, if the text has them."""
    word = _NEXT_WORD.match(text, index)
    return word is not None and word[1].lower() in _FIRST_WORDS


def _is_small(letter: str) -> bool:
    """Whether it is a small letter of a script that begins sentences with capitals, which the Georgian does not."""
    return letter.islower() and not "\u10d0" <= letter <= "\u10ff"
