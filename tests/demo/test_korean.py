"""Korean word forms against a table checked by hand, and the arithmetic of syllables for all of Hangul."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.demo.korean import (
    Level,
    Predicate,
    Tense,
    accusative,
    adnominal,
    copula,
    final_consonant,
    finite,
    honorific,
    infinitive,
    join_syllable,
    negative_copula,
    nominative,
    past_stem,
    split_syllable,
    together_with,
    topic,
    toward,
    with_final,
)

SYLLABLES = st.characters(min_codepoint=ord("가"), max_codepoint=ord("힣"))

# dictionary form, irregular class: 아/어 form · past 해요 · 합쇼체 · before a noun: past · future · present
VERB_FORMS = """
먹다        | 먹어 먹었어요 먹습니다 먹은 먹을 먹는
읽다        | 읽어 읽었어요 읽습니다 읽은 읽을 읽는
가다        | 가 갔어요 갑니다 간 갈 가는
오다        | 와 왔어요 옵니다 온 올 오는
보다        | 봐 봤어요 봅니다 본 볼 보는
주다        | 줘 줬어요 줍니다 준 줄 주는
배우다      | 배워 배웠어요 배웁니다 배운 배울 배우는
마시다      | 마셔 마셨어요 마십니다 마신 마실 마시는
가르치다    | 가르쳐 가르쳤어요 가르칩니다 가르친 가르칠 가르치는
건너다      | 건너 건넜어요 건넙니다 건넌 건널 건너는
보내다      | 보내 보냈어요 보냅니다 보낸 보낼 보내는
쉬다        | 쉬어 쉬었어요 쉽니다 쉰 쉴 쉬는
되다        | 돼 됐어요 됩니다 된 될 되는
켜다        | 켜 켰어요 켭니다 켠 켤 켜는
공부하다    | 공부해 공부했어요 공부합니다 공부한 공부할 공부하는
쓰다        | 써 썼어요 씁니다 쓴 쓸 쓰는
모으다      | 모아 모았어요 모읍니다 모은 모을 모으는
만들다      | 만들어 만들었어요 만듭니다 만든 만들 만드는
살다        | 살아 살았어요 삽니다 산 살 사는
울다        | 울어 울었어요 웁니다 운 울 우는
씻다        | 씻어 씻었어요 씻습니다 씻은 씻을 씻는
닫다        | 닫아 닫았어요 닫습니다 닫은 닫을 닫는
입다        | 입어 입었어요 입습니다 입은 입을 입는
앉다        | 앉아 앉았어요 앉습니다 앉은 앉을 앉는
있다        | 있어 있었어요 있습니다 있은 있을 있는
돕다 ㅂ     | 도와 도왔어요 돕습니다 도운 도울 돕는
줍다 ㅂ     | 주워 주웠어요 줍습니다 주운 주울 줍는
걷다 ㄷ     | 걸어 걸었어요 걷습니다 걸은 걸을 걷는
듣다 ㄷ     | 들어 들었어요 듣습니다 들은 들을 듣는
깨닫다 ㄷ   | 깨달아 깨달았어요 깨닫습니다 깨달은 깨달을 깨닫는
짓다 ㅅ     | 지어 지었어요 짓습니다 지은 지을 짓는
낫다 ㅅ     | 나아 나았어요 낫습니다 나은 나을 낫는
모르다 르   | 몰라 몰랐어요 모릅니다 모른 모를 모르는
부르다 르   | 불러 불렀어요 부릅니다 부른 부를 부르는
따르다      | 따라 따랐어요 따릅니다 따른 따를 따르는
보여 주다   | 보여 줘 보여 줬어요 보여 줍니다 보여 준 보여 줄 보여 주는
"""
# dictionary form: 아/어 form · past 해요 · 합쇼체 · before a noun
ADJECTIVE_FORMS = """
크다        | 커 컸어요 큽니다 큰
바쁘다      | 바빠 바빴어요 바쁩니다 바쁜
예쁘다      | 예뻐 예뻤어요 예쁩니다 예쁜
배고프다    | 배고파 배고팠어요 배고픕니다 배고픈
피곤하다    | 피곤해 피곤했어요 피곤합니다 피곤한
넓다        | 넓어 넓었어요 넓습니다 넓은
좁다        | 좁아 좁았어요 좁습니다 좁은
얇다        | 얇아 얇았어요 얇습니다 얇은
길다        | 길어 길었어요 깁니다 긴
달다        | 달아 달았어요 답니다 단
비싸다      | 비싸 비쌌어요 비쌉니다 비싼
느리다      | 느려 느렸어요 느립니다 느린
좋다        | 좋아 좋았어요 좋습니다 좋은
맛있다      | 맛있어 맛있었어요 맛있습니다 맛있는
춥다 ㅂ     | 추워 추웠어요 춥습니다 추운
아름답다 ㅂ | 아름다워 아름다웠어요 아름답습니다 아름다운
곱다 ㅂ     | 고와 고왔어요 곱습니다 고운
목마르다 르 | 목말라 목말랐어요 목마릅니다 목마른
게으르다 르 | 게을러 게을렀어요 게으릅니다 게으른
빨갛다 ㅎ   | 빨개 빨갰어요 빨갛습니다 빨간
하얗다 ㅎ   | 하얘 하얬어요 하얗습니다 하얀
퍼렇다 ㅎ   | 퍼레 퍼렜어요 퍼렇습니다 퍼런
"""


def table(text: str, adjective: bool, columns: int) -> list[tuple[Predicate, list[str]]]:
    rows = []
    for line in text.strip().splitlines():
        entry, forms = line.split("|")
        words = entry.split()
        irregular = words.pop() if len(words[-1]) == 1 else ""
        dictionary = " ".join(words)
        # A phrase of n words has n words in every column.
        cells, size = forms.split(), len(words)
        joined = [" ".join(cells[i : i + size]) for i in range(0, len(cells), size)]
        assert len(joined) == columns, line
        rows.append((Predicate(dictionary, irregular, adjective), joined))
    return rows


def name(value: object) -> str:
    return value.dictionary if isinstance(value, Predicate) else ""


@pytest.mark.parametrize(("verb", "expected"), table(VERB_FORMS, adjective=False, columns=6), ids=name)
def test_verbs_are_conjugated(verb: Predicate, expected: list[str]) -> None:
    assert [
        infinitive(verb),
        finite(verb, Tense.PAST, Level.POLITE),
        finite(verb, Tense.PRESENT, Level.FORMAL),
        adnominal(verb, Tense.PAST),
        adnominal(verb, Tense.FUTURE),
        adnominal(verb, Tense.PRESENT),
    ] == expected


@pytest.mark.parametrize(("adjective", "expected"), table(ADJECTIVE_FORMS, adjective=True, columns=4), ids=name)
def test_adjectives_are_conjugated(adjective: Predicate, expected: list[str]) -> None:
    assert [
        infinitive(adjective),
        finite(adjective, Tense.PAST, Level.POLITE),
        finite(adjective, Tense.PRESENT, Level.FORMAL),
        adnominal(adjective, Tense.PRESENT),
    ] == expected


@pytest.mark.parametrize(
    ("tense", "level", "statement", "question"),
    [
        (Tense.PRESENT, Level.CASUAL, "들어", "들어"),
        (Tense.PRESENT, Level.POLITE, "들어요", "들어요"),
        (Tense.PRESENT, Level.FORMAL, "듣습니다", "듣습니까"),
        (Tense.PAST, Level.CASUAL, "들었어", "들었어"),
        (Tense.PAST, Level.POLITE, "들었어요", "들었어요"),
        (Tense.PAST, Level.FORMAL, "들었습니다", "들었습니까"),
        (Tense.FUTURE, Level.CASUAL, "들을 거야", "들을 거야"),
        (Tense.FUTURE, Level.POLITE, "들을 거예요", "들을 거예요"),
        (Tense.FUTURE, Level.FORMAL, "들을 겁니다", "들을 겁니까"),
    ],
)
def test_every_ending_of_a_sentence(tense: Tense, level: Level, statement: str, question: str) -> None:
    listen = Predicate("듣다", "ㄷ")
    assert finite(listen, tense, level) == statement
    assert finite(listen, tense, level, question=True) == question


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        (Predicate("읽다"), "읽으셨습니까"),
        (Predicate("가다"), "가셨습니까"),
        (Predicate("만들다"), "만드셨습니까"),
        (Predicate("돕다", "ㅂ"), "도우셨습니까"),
        (Predicate("걷다", "ㄷ"), "걸으셨습니까"),
        (Predicate("짓다", "ㅅ"), "지으셨습니까"),
    ],
    ids=name,
)
def test_honorific(verb: Predicate, expected: str) -> None:
    assert finite(honorific(verb), Tense.PAST, Level.FORMAL, question=True) == expected


def test_copula_depends_on_the_final_consonant_and_the_level() -> None:
    said = {
        (noun, level, tense): copula(noun, tense, level)
        for noun in ("학생", "의사")
        for level in Level
        for tense in (Tense.PRESENT, Tense.PAST)
    }
    assert list(said.values()) == [
        *("학생이야", "학생이었어", "학생이에요", "학생이었어요", "학생입니다", "학생이었습니다"),
        *("의사야", "의사였어", "의사예요", "의사였어요", "의사입니다", "의사였습니다"),
    ]
    assert copula("학생", Tense.PRESENT, Level.FORMAL, question=True) == "학생입니까"


def test_negative_copula() -> None:
    assert negative_copula("학생", Tense.PRESENT, Level.POLITE) == "학생이 아니에요"
    assert negative_copula("의사", Tense.PRESENT, Level.CASUAL) == "의사가 아니야"
    assert negative_copula("의사", Tense.PRESENT, Level.FORMAL, question=True) == "의사가 아닙니까"
    assert negative_copula("학생", Tense.PAST, Level.POLITE) == "학생이 아니었어요"
    assert negative_copula("학생", Tense.PAST, Level.FORMAL) == "학생이 아니었습니다"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("학생", "학생은 학생이 학생을 학생과 학생으로"),
        ("의사", "의사는 의사가 의사를 의사와 의사로"),
        ("지하철", "지하철은 지하철이 지하철을 지하철과 지하철로"),
        ("숲", "숲은 숲이 숲을 숲과 숲으로"),
        ("저", "저는 제가 저를 저와 저로"),
        ("나", "나는 내가 나를 나와 나로"),
    ],
)
def test_particles(word: str, expected: str) -> None:
    assert " ".join(mark(word) for mark in (topic, nominative, accusative, together_with, toward)) == expected


def test_particles_of_who() -> None:
    assert nominative("누구") == "누가"


@given(SYLLABLES)
def test_syllables_split_and_join(syllable: str) -> None:
    assert join_syllable(*split_syllable(syllable)) == syllable


@given(SYLLABLES)
def test_a_final_can_be_taken_and_put_back(syllable: str) -> None:
    opened = with_final(syllable, "")
    assert final_consonant(opened) == ""
    assert with_final(opened, final_consonant(syllable)) == syllable


@given(st.text(SYLLABLES, min_size=1, max_size=4).filter(lambda word: word not in ("저", "나", "누구")))
def test_particles_agree_about_the_final_consonant(word: str) -> None:
    closed = topic(word).endswith("은")
    assert (
        closed
        == nominative(word).endswith("이")
        == accusative(word).endswith("을")
        == together_with(word).endswith("과")
    )
    assert toward(word).endswith("으로") == (closed and final_consonant(word) != "ㄹ")


@given(st.text(SYLLABLES, min_size=1, max_size=3))
def test_regular_stems_always_conjugate(stem: str) -> None:
    """The past is the 아/어 form with ㅆ, whatever the stem."""
    verb = Predicate(stem + "다")
    assert final_consonant(infinitive(verb)) == ""
    assert past_stem(verb) == with_final(infinitive(verb), "ㅆ")
    assert finite(verb, Tense.PAST, Level.POLITE).startswith(past_stem(verb))


@pytest.mark.parametrize("letter", ["a", "ㄱ", "1"])
def test_what_is_no_syllable_is_refused(letter: str) -> None:
    with pytest.raises(ValueError, match="not a Hangul syllable"):
        split_syllable(letter)
