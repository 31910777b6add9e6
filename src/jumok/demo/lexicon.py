"""The words of the built-in corpus: nouns in classes, and adjectives with the nouns they can describe.

Tables are short strings so that they can be read and extended like a vocabulary list. A selection such as
"food -soup desk" means every noun of the class `food` but soup, and also desk.
"""

from dataclasses import dataclass
from functools import cache

from jumok.demo.korean import Predicate, Tense, adnominal


# Words are compared by identity (eq=False): there is one object for each, and sentences look them up all the time.
@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with what is needed to count it."""

    english: str
    korean: str
    kind: str
    plural: str
    """English plural; equal to `english` for what is not counted (bread)."""
    counter: str
    """The Korean word that numbers stand before (세 권); '' if we never count it."""

    @property
    def countable(self) -> bool:
        return self.plural != self.english

    @property
    def animate(self) -> bool:
        return self.kind in ("person", "animal", "name")


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective with the nouns it can be said of."""

    english: str
    before_noun: str
    predicate: Predicate | None
    """None when it only stands before a noun (새)."""
    nouns: tuple[Noun, ...]
    comparative: str

    @property
    def word(self) -> Predicate:
        if self.predicate is None:
            raise ValueError(f"{self.english!r} only stands before a noun")
        return self.predicate

    @property
    def ends_sentences(self) -> bool:
        """낡다 and 배부르다 say what is so by their past form, which would blur the tenses: they only give reasons."""
        return self.predicate is not None and self.english not in ("old", "full")


# (kind, usual counter): "english[/plural] korean [counter]". "~" in place of a plural: not counted in English.
_NOUN_TABLE = {
    (
        "person",
        "명",
    ): """student 학생, doctor 의사, nurse 간호사, singer 가수, chef 요리사, farmer 농부, child/children 아이,
        boy 소년, girl 소녀, writer 작가, painter 화가, soldier 군인, driver 운전사, neighbor 이웃""",
    (
        "name",
        "",
    ): "Minsu/~ 민수, Jiyoung/~ 지영, Sumin/~ 수민, Junho/~ 준호, Yuna/~ 유나, Daniel/~ 다니엘, Anna/~ 안나, Tom/~ 톰",
    (
        "animal",
        "마리",
    ): """animal 동물, dog 개, cat 고양이, horse 말, cow 소, rabbit 토끼, duck 오리, monkey 원숭이, bear 곰,
        fox/foxes 여우, pig 돼지""",
    (
        "food",
        "개",
    ): """apple 사과, egg 계란, banana 바나나, potato/potatoes 감자, carrot 당근, cookie 쿠키, bread/~ 빵, rice/~ 밥,
        fish/~ 생선, meat/~ 고기, soup/~ 수프, pizza/~ 피자, cake/~ 케이크""",
    ("drink", "잔"): "water/~ 물, milk/~ 우유, tea/~ 차, coffee/~ 커피, juice/~ 주스",
    (
        "reading",
        "권",
    ): "book 책, novel 소설, magazine 잡지, letter 편지 통, poem 시 편, newspaper 신문 부, story/stories 이야기 개",
    ("hearing", "곡"): "song 노래, music/~ 음악, radio/~ 라디오",
    (
        "thing",
        "개",
    ): """bag 가방, chair 의자, box/boxes 상자, cup 컵, umbrella 우산, clock 시계, key 열쇠, desk 책상, doll 인형,
        ball 공, pencil 연필 자루, flower 꽃 송이, picture 그림 장, ticket 표 장, map 지도 장, camera 카메라 대,
        car 자동차 대, bicycle 자전거 대, computer 컴퓨터 대""",
    ("show", "편"): "movie 영화",
    ("clothing", "개"): "hat 모자, coat 코트 벌, sweater 스웨터 벌, shoes/~ 신발, gloves/~ 장갑",
    ("opening", "개"): "door 문, window 창문",
    ("crossing", ""): "street 길, river 강, bridge 다리, field 들판",
    (
        "place",
        "",
    ): """school 학교, library/libraries 도서관, park 공원, market 시장, hospital 병원, house 집, restaurant 식당,
        station 역, museum 박물관, beach/beaches 바닷가, office 사무실, kitchen 부엌, garden 정원, room 방, forest 숲,
        village 마을, city/cities 도시""",
    ("study", ""): "Korean/~ 한국어, English/~ 영어, history/~ 역사, math/~ 수학, science/~ 과학",
    ("instrument", "대"): "piano/~ 피아노, guitar/~ 기타, violin/~ 바이올린",
    ("sport", ""): "soccer/~ 축구, baseball/~ 야구, tennis/~ 테니스",
}


def _read_nouns() -> dict[str, Noun]:
    nouns = {}
    for (kind, usual_counter), table in _NOUN_TABLE.items():
        for entry in table.split(","):
            forms, korean, *counter = entry.split()
            english, _, plural = forms.partition("/")
            plural = english if plural == "~" else plural or english + "s"
            nouns[english] = Noun(english, korean, kind, plural, counter[0] if counter else usual_counter)
    return nouns


NOUNS: dict[str, Noun] = _read_nouns()
KINDS: tuple[str, ...] = tuple(kind for kind, _ in _NOUN_TABLE)


@cache
def select_nouns(selection: str) -> tuple[Noun, ...]:
    """The nouns that a selection of kinds and words names, in the order of the table. An unknown word is a KeyError."""
    chosen: set[str] = set()
    removed: set[str] = set()
    for term in selection.split():
        target, word = (removed, term[1:]) if term.startswith("-") else (chosen, term)
        target |= {n.english for n in NOUNS.values() if n.kind == word} if word in KINDS else {NOUNS[word].english}
    return tuple(noun for noun in NOUNS.values() if noun.english in chosen - removed)


def predicate(entry: str, adjective: bool = False) -> Predicate:
    """'걷다 ㄷ' → the ㄷ-irregular 걷다. A phrase may come first: '키가 크다'."""
    words = entry.split()
    irregular = words.pop() if len(words[-1]) == 1 else ""
    return Predicate(" ".join(words), irregular, adjective)


HE, SHE = select_nouns("boy Minsu Junho Daniel Tom"), select_nouns("girl Jiyoung Sumin Yuna Anna")
OWNED = select_nouns("thing clothing reading instrument dog cat horse cow rabbit pig -poem -story -magazine")
OUR_OWN = select_nouns("house school dog cat car garden office room village")

_LARGE = (
    "bag chair box cup umbrella clock desk doll ball flower picture map camera car computer hat window door house room"
)
_SITES = "house room park garden school library museum restaurant kitchen office station market hospital"

# english, korean, nouns, comparative
_ADJECTIVE_TABLE = (
    ("tired", "피곤하다", "person name animal", ""),
    ("hungry", "배고프다", "person name animal", ""),
    ("thirsty", "목마르다 르", "person name animal", ""),
    ("sleepy", "졸리다", "person name animal", ""),
    ("sick", "아프다", "person name animal", ""),
    ("weak", "약하다", "person animal", "weaker"),
    ("lazy", "게으르다 르", "person name animal", "lazier"),
    ("full", "배부르다 르", "person name animal", ""),
    ("busy", "바쁘다", "person name", "busier"),
    ("happy", "행복하다", "person name", "happier"),
    ("kind", "친절하다", "person name", "kinder"),
    ("brave", "용감하다", "person name dog horse", "braver"),
    ("smart", "똑똑하다", "person name dog monkey", "smarter"),
    ("honest", "정직하다", "person name", "more honest"),
    ("tall", "키가 크다", "person name", "taller"),
    ("cute", "귀엽다 ㅂ", "child boy girl animal doll", "cuter"),
    (
        "famous",
        "유명하다",
        "singer chef writer painter doctor movie song book novel museum restaurant picture",
        "more famous",
    ),
    ("fast", "빠르다 르", "animal car bicycle computer", "faster"),
    ("slow", "느리다", "animal car computer", "slower"),
    ("quiet", "조용하다", "library park room village museum house street forest office", "quieter"),
    ("noisy", "시끄럽다 ㅂ", "street market station city restaurant school room house", "noisier"),
    ("big", "크다", f"animal {_LARGE} {_SITES} city village", "bigger"),
    ("small", "작다", f"animal {_LARGE} {_SITES} village", "smaller"),
    (
        "new",
        "새",
        "thing clothing -flower -picture -ball song movie book novel house bridge school hospital library",
        "",
    ),
    (
        "old",
        "낡다",
        "bag chair box umbrella clock desk doll car bicycle coat hat shoes house bridge computer camera door",
        "",
    ),
    ("red", "빨갛다 ㅎ", "apple flower bag hat car coat sweater ball box umbrella door bicycle", ""),
    ("blue", "파랗다 ㅎ", "bag hat car coat sweater ball box umbrella door bicycle pencil", ""),
    ("yellow", "노랗다 ㅎ", "flower bag hat coat sweater ball box umbrella pencil", ""),
    ("white", "하얗다 ㅎ", "flower bag hat coat sweater shoes gloves dog cat horse rabbit duck house cup", ""),
    ("black", "까맣다 ㅎ", "bag hat coat shoes gloves dog cat horse cow bear car umbrella", ""),
    ("expensive", "비싸다", "thing clothing meat fish cake -ball house piano violin book", "more expensive"),
    ("cheap", "싸다", "thing clothing bread egg banana potato -car book", "cheaper"),
    ("heavy", "무겁다 ㅂ", "bag chair box desk computer camera clock bicycle door coat book", "heavier"),
    ("light", "가볍다 ㅂ", "bag chair box umbrella camera bicycle coat shoes", "lighter"),
    ("pretty", "예쁘다", "flower bag hat doll cup coat sweater picture garden umbrella cat", "prettier"),
    ("beautiful", "아름답다 ㅂ", "flower picture garden beach forest river city song music story", "more beautiful"),
    ("long", "길다", "river bridge letter story novel movie book pencil", "longer"),
    ("short", "짧다", "letter story novel movie song poem pencil", "shorter"),
    (
        "interesting",
        "재미있다",
        "book novel story movie newspaper magazine history math science museum",
        "more interesting",
    ),
    ("boring", "지루하다", "book novel story movie magazine", "more boring"),
    ("difficult", "어렵다 ㅂ", "book novel poem study", "more difficult"),
    ("easy", "쉽다 ㅂ", "book study song", "easier"),
    ("sad", "슬프다", "story song movie novel poem music", "sadder"),
    ("delicious", "맛있다", "food drink -water", "more delicious"),
    ("sweet", "달다", "apple banana cookie cake juice potato", "sweeter"),
    ("spicy", "맵다 ㅂ", "soup pizza fish meat", "spicier"),
    ("salty", "짜다", "soup pizza fish meat bread egg", "saltier"),
    ("hot", "뜨겁다 ㅂ", "soup pizza rice potato meat tea coffee milk water", "hotter"),
    ("cold", "차갑다 ㅂ", "soup rice pizza meat fish potato tea coffee milk water juice river", "colder"),
    ("fresh", "신선하다", "apple carrot egg fish meat milk bread juice banana", "fresher"),
    ("wide", "넓다", "street river field bridge beach door", "wider"),
    ("narrow", "좁다", "street bridge river room kitchen garden door", "narrower"),
    ("deep", "깊다", "river forest", ""),
    ("dark", "어둡다 ㅂ", "street field bridge room forest house kitchen park", "darker"),
    ("dangerous", "위험하다", "street river bridge field forest beach bear city", "more dangerous"),
    (
        "clean",
        "깨끗하다",
        "street river water cup room house kitchen restaurant hospital office shoes coat beach",
        "cleaner",
    ),
    (
        "dirty",
        "더럽다 ㅂ",
        "street river water cup room house kitchen shoes coat gloves dog pig ball window car",
        "dirtier",
    ),
)


def _read_adjectives() -> dict[str, Adjective]:
    adjectives = {}
    for english, korean, selection, comparative in _ADJECTIVE_TABLE:
        word = predicate(korean, adjective=True) if korean.endswith("다") or " " in korean else None
        before_noun = adnominal(word, Tense.PRESENT) if word else korean
        adjectives[english] = Adjective(english, before_noun, word, select_nouns(selection), comparative)
    return adjectives


ADJECTIVES: dict[str, Adjective] = _read_adjectives()
ADJECTIVES_OF: dict[Noun, tuple[Adjective, ...]] = {
    noun: tuple(a for a in ADJECTIVES.values() if noun in a.nouns) for noun in NOUNS.values()
}
BEFORE_NOUN: dict[Noun, tuple[Adjective, ...]] = {
    noun: tuple(a for a in fitting if a.english != "full") for noun, fitting in ADJECTIVES_OF.items()
}
"""Nobody says "the full rabbit"."""
