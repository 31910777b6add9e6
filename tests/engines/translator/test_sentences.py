"""Ends of sentences in many scripts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines.translator.sentences import sentence_ends


def sentences(text: str, language: str | None = None) -> list[str]:
    return [text[begin:end].strip() for begin, end in pairwise([0, *sentence_ends(text, language), len(text)])]


# A bar stands between sentences, and in the text there is a space in its place.
@pytest.mark.parametrize("language", ["own", None], ids=["language known", "language unknown"])
@pytest.mark.parametrize(
    ("of", "marked"),
    [
        ("en", "I am a student.|She is a teacher.|He sings."),
        ("en", "Mr. Kim met Dr. J. Park at 3.5 p.m. on Main St. in the U.S. Army base.|He left."),
        ("en", "See www.example.com/a.b?c=1 for v1.2.3.|Mail me at a.b@c.org.|Open file.txt now."),
        ("en", 'He said "No."|Then he left.|(It rained.)|We stayed.'),
        ("en", "Wait... what?|I don't know… maybe."),
        ("en", "He works at Google Inc. in the U.S.|They like him.|Prof. Dr. Lee et al. wrote it."),
        ("en", "J. R. R. Tolkien wrote it.|George W. Bush read it."),
        ("en", "It is 5 p.m.|We go home."),
        ("en", "No. 5 is alive, i.e. the no. 1, e.g. here.|Vol. 3 is not."),
        ("en", "Mary wasn't.|Tom was, as was Jones's.|Tell them."),
        ("en", "Really?!|Yes!|Go."),
        ("en", "i like it.|it is good.|mr. kim too."),
        ("en", "a man sits .|a dog runs ."),
        ("en", "1. Open the door.|2. Close it."),
        ("en", '"Stop!" he shouted.|She did.'),
        ("en", "no end here"),
        ("en", "Ph.D. students use Node.js 2.0.|They sleep."),
        ("de", "Am 3. Oktober feiern wir.|Der 2. Weltkrieg endete 1945.|Danach war Ruhe."),
        ("de", "Das ist z. B. gut, d. h. schön, u. a.|Es regnet."),
        ("de", "Er wohnt in der Hauptstr. 5.|Sie nicht."),
        ("de", "Er sagte: „Ich komme.“|Dann ging er."),
        ("cs", "Je 3. října.|Prší."),
        ("fr", "M. Dupont est là.|Mme Curie aussi."),
        ("fr", "« Il pleut. »|Il part.|Pourquoi ?|Parce que !"),
        ("es", "¿Cómo estás?|¡Muy bien!|El Sr. García viene."),
        ("ko", "나는 학생이다.|그녀는 선생님이에요.|왜요?|좋아!"),
        ("ko", "2026. 11. 17. 오후에 3.5킬로를 뛰었다.|힘들다."),
        ("ko", "“왜?”라고 물었다.|그는 “몰라.”라고 답했다."),
        ("ko", "www.naver.com에 가세요.|김철수.kr은 아니다."),
        ("hi", "मैं छात्र हूँ।|वह शिक्षक है।|क्यों?"),
        ("ar", "أنا طالب.|هي معلمة.|لماذا؟|لا أعرف."),
        ("ur", "میں طالب علم ہوں۔|وہ استاد ہے۔"),
        ("hy", "Ես ուսանող եմ։|Նա ուսուցիչ է։"),
        ("am", "እኔ ተማሪ ነኝ።|እሷ አስተማሪ ናት።"),
        ("el", "Τι κάνεις;|Είμαι καλά; ναι.|Εσύ;"),
        ("ka", "მე სტუდენტი ვარ.|ის მასწავლებელია."),
        ("ru", "Я студент.|А. С. Пушкин — поэт."),
        ("th", "ฉันเป็นนักเรียน เธอเป็นครู"),
        ("my", "ကျွန်တော်က ကျောင်းသားပါ။|သူက ဆရာမပါ။"),
    ],
)
def test_sentences_between_spaces(of: str, marked: str, language: str | None) -> None:
    assert sentences(marked.replace("|", " "), language and of) == marked.split("|")


@pytest.mark.parametrize(
    "marked",
    [
        "我是学生。|她是老师！|他呢？|不知道。",
        "他说：“你好。”然后走了。",
        "价格是3.5元，他……走了。|很便宜。",
        "雨が降る。|家にいよう！|「なぜ？」と言った。|終わり。",
        "「はい。」|「いいえ。」",
        "すごい!|本当?|うん。",
        "비가 온다.|집에 있자.",
        "It rains.|We stay.",  # the space was forgotten
    ],
)
def test_sentences_without_spaces_between_them(marked: str) -> None:
    assert sentences(marked.replace("|", "")) == marked.split("|")


def test_a_number_ends_a_sentence_unless_the_language_has_such_ordinals() -> None:
    assert len(sentences("I am 20. Tom is 30.", "en")) == 2
    assert len(sentences("Am 3. Oktober war es kalt.", "de")) == 1
    assert len(sentences("Er ist 20. Sie ist 30.", "de")) == 2


@given(st.text(st.sampled_from("aB3 .?!…。、가나 \t\u00a0\"')」&") | st.characters(codec="utf-8"), max_size=60))
def test_every_sentence_has_a_letter(text: str) -> None:
    ends = sentence_ends(text)
    assert ends == sorted(set(ends))
    assert not ends or all(any(map(str.isalpha, sentence)) for sentence in sentences(text))
