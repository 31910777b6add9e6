"""What the names of columns mean: source or target, a language, a text, a label. Names in several languages."""

import re
from collections.abc import Sequence

from jumok.data.reading.languages import is_language_code, language_tag

_SOURCE = """
    src source sources original originals input from quelle quelltext ausgangstext quellsprache ausgangssprache
    quellsegment bron brontekst brontaal origen fuente origem fonte origine origines origina källa källtext
    källspråk kilde kildetekst kildespråk lähde lähdeteksti lähtöteksti źródło źródłowy źródłowe zdroj zdrojový
    předloha forrás источник исходный исходник оригинал джерело оригінал kaynak nguồn sumber asal منبع المصدر
    الأصل 원문 원본 원어 소스 출발어 원문장 原文 源文 源语言 源语 源文本 原文本 来源 ソース 原語 起点言語 源語
"""
_TARGET = """
    tgt trg target targets translation translations translated output reference to ziel zieltext zielsprache
    zielsegment übersetzung übersetzungen cible traduction traductions destino meta objetivo traducción
    traducciones alvo tradução traduzione traduzioni arrivo destinazione doel doeltekst doeltaal vertaling mål
    måltext målspråk måltekst översättning oversettelse oversættelse kohde kohdeteksti käännös cel docelowy
    docelowe tłumaczenie cíl cílový překlad preklad cieľ fordítás cél перевод целевой переклад hedef çeviri đích
    dịch terjemahan ترجمه الترجمة الهدف 번역 번역문 역문 타깃 타겟 도착어 번역본 번역어 译文 目标 目标语言
    目标语 翻译 譯文 訳文 翻訳 ターゲット 対訳 目標言語 翻譯
"""
_LABEL = """
    label labels class classes category categories sentiment target y polarity topic intent emotion stars rating
    klasse kategorie etikett bewertung étiquette catégorie classe étiquettes etiqueta clase categoría categoria
    etichetta sentimento kategori kategoria etykieta метка класс категория тональность etiket sınıf nhãn 라벨
    레이블 분류 클래스 카테고리 감성 감정 범주 标签 类别 分类 情感 標籤 類別 ラベル カテゴリ カテゴリー クラス
    分類 感情
"""
_TEXT = """
    text texts review reviews sentence sentences document documents content body comment comments tweet message
    messages utterance question query x satz sätze texte phrase phrases commentaire texto frase comentario
    conteúdo contenuto testo recensione tekst zdanie текст предложение отзыв metin cümle yorum văn bản 텍스트
    문장 본문 내용 리뷰 댓글 문서 文本 句子 内容 评论 正文 テキスト 文章 本文 文 レビュー
"""
# Words beside the word that matters, as in "Source text (EN)" or "German sentence".
_BESIDE = """
    text texts texte texto testo tekst teksten metin текст 텍스트 sentence sentences satz phrase frase zdanie
    предложение 문장 segment segments segmento string strings term language lang langue idioma sprache lingua língua
    język язык dil 언어 version column de del di da col value content
"""
# Columns of tables that hold neither a side nor a text; they show that a row is a header.
_OTHER = """
    id ids key nr no. num number index idx row line date time datetime timestamp created modified author user
    translator comment comments note notes remark remarks context status state type domain subject project file
    filename path url link license licence attribution origin split score length kommentar kommentare bemerkung
    bemerkungen notiz notizen datum autor nummer zeile quellenangabe commentaire commentaires remarque numéro
    auteur comentario comentarios nota notas número fecha fonte commento commenti numero data autore комментарий
    комментарии примечание номер дата автор 번호 순번 비고 메모 주석 날짜 일자 작성자 출처 상태 参考 备注 编号
    序号 日期 作者 备考 備考 番号 日付 メモ
"""
_WORDS = {
    role: frozenset(words.split())
    for role, words in (
        ("source", _SOURCE),
        ("target", _TARGET),
        ("label", _LABEL),
        ("text", _TEXT),
        ("beside", _BESIDE),
        ("other", _OTHER),
        ("qualifier", "name gold true clean raw full main"),
    )
}
_SIDE_WORDS = _WORDS["source"] | _WORDS["target"] | _WORDS["beside"]
_SPLIT = re.compile(r"[\s_:/|.,;()\[\]{}<>#*\"'-]+")
_IN_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")  # "sourceText"
_HAS_REGION = re.compile(r"(?i:de|da)[-_](?i:[a-z]{2})")  # "de-AT", "da-DK": the codes are words beside others, too
_IN_BRACKETS = re.compile(r"[(\[][^)\]]*[)\]]")
MOST_CHARACTERS = 40  # of a number
MOST_WORDS = 5  # in the name of a column; longer ones are sentences


def side_of(name: str) -> str:
    """`source` or `target` if a column's name says so ("Source text", "Quelle (DE)", "번역"), else an empty text."""
    words = _words(name)
    if not 0 < len(words) <= MOST_WORDS or _is_sentence(name):
        return ""
    sides = {side for side in ("source", "target") if any(word in _WORDS[side] for word in words)}
    if "to" in words or "from" in words:  # "to" is the name of a column, but "go to" is a sentence
        sides = sides if len(words) == 1 else set()
    rest = [word for word in _words(name, lower=False) if word.lower() not in _SIDE_WORDS]
    return sides.pop() if len(sides) == 1 and all(map(_is_part_of_tag, rest)) else ""


def language_of(name: str) -> str | None:
    """The language that a column is named after, as a tag: "English", "en_US", "German text", "Source (DE)"."""
    words = _words(name, lower=False)
    rest = [word for word in words if word.lower() not in _SIDE_WORDS]
    if (len(rest) == len(words) or _HAS_REGION.fullmatch(name.strip())) and (found := language_tag(name.strip())):
        return found
    if len(words) > MOST_WORDS or _is_sentence(name):
        return None
    plain = _IN_BRACKETS.sub(" ", name).strip()
    if plain and plain != name and (found := language_of(plain)):  # "Portuguese (Brazil)" is Portuguese
        return found
    if not rest and len(words) <= 2:  # "Text DE"; "de" is a Spanish word, too
        rest = [word for word in words if is_language_code(word)]
    return language_tag("_".join(rest)) or language_tag(" ".join(rest))


def is_name_of(role: str, name: str) -> bool:
    """Whether a column of this name holds the `label` or the `text`: "Label", "class_name", "Review text"."""
    words = _words(name)
    has_label = any(word in _WORDS["label"] for word in words)
    known = _WORDS["label"] | _WORDS["text"] | _WORDS["beside"] | _WORDS["qualifier"]
    alone = {"x", "y"} & set(words) and len(words) > 1  # names by themselves only
    if not 0 < len(words) <= MOST_WORDS or alone or not all(word in known for word in words):
        return False
    return has_label if role == "label" else not has_label and any(word in _WORDS["text"] for word in words)


def says_what_it_is(name: str) -> bool:
    """Whether a cell is a usual name of a column, and hardly anything else; codes of languages may be words."""
    words = _words(name)
    usual = len(words) == 1 and any(words[0] in _WORDS[role] for role in ("other", "label", "text"))
    return usual or bool(side_of(name)) or (language_of(name) is not None and not is_language_code(name))


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: two of its cells are usual names, or it alone has no number where all
    others have one."""
    if len({language_of(name) or side_of(name) or name for name in rows[0] if says_what_it_is(name)}) >= 2:
        return True
    return len(rows) > 2 and any(
        cell.strip() and not is_number(cell) and all(len(row) > place and is_number(row[place]) for row in rows[1:])
        for place, cell in enumerate(rows[0])
    )


def _words(name: str, *, lower: bool = True) -> list[str]:
    name = _IN_CAMEL_CASE.sub(" ", name)
    return [word.lower() if lower else word for word in _SPLIT.split(name) if word]


def _is_sentence(name: str) -> bool:
    return name.rstrip().endswith((".", "?", "!", "。", "？", "！"))


def _is_part_of_tag(word: str) -> bool:
    """Whether it is a language, or a region or script as in en-US and zh-Hans."""
    return language_tag(word) is not None or (len(word) == 2 and word.isupper()) or (len(word) == 4 and word.istitle())


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, a date or a time."""
    return len(cell) <= MOST_CHARACTERS and bool(re.fullmatch(r"[#\s]*[\d.,:/\s+-]*\d[\d.,:/\s-]*%?", cell))
