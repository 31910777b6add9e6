"""The built-in corpus: its promises about held-out combinations, about being a function, and about its Korean."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from jumok.demo.compounds import because, say_because
from jumok.demo.descriptions import say_identity
from jumok.demo.grammar import english_clause, korean_clause
from jumok.demo.held_out import FAMOUS_COMBINATIONS, HELD_OUT, all_combinations
from jumok.demo.korean import Level, Tense
from jumok.demo.lexicon import ADJECTIVES, NOUNS, select_nouns
from jumok.demo.meaning import Clause, Phrase, Sentence
from jumok.demo.pairs import (
    FAMOUS,
    TEST_SIZE,
    VALID_SIZE,
    DemoCorpus,
    demo_pairs,
    draw_sentence,
    famous_sentences,
    write_demo_corpus,
)
from jumok.demo.phrases import Draw
from jumok.demo.reasons import WHY, WHY_NOT
from jumok.demo.verbs import VERB, VERBS, Form
from jumok.errors import InputError


@pytest.fixture(scope="module")
def making() -> tuple[DemoCorpus, list[Sentence]]:
    """The default corpus, and all that was drawn for it, with repetitions and with the combinations."""
    drawn: list[Sentence] = []

    def recorded(rng: Random) -> Sentence:
        drawn.append(draw_sentence(rng))
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jumok.demo.pairs.draw_sentence", recorded)
        return demo_pairs(), drawn


@pytest.fixture(scope="module")
def corpus(making: tuple[DemoCorpus, list[Sentence]]) -> DemoCorpus:
    return making[0]


@pytest.fixture(scope="module")
def drawn(making: tuple[DemoCorpus, list[Sentence]]) -> list[Sentence]:
    return making[1]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def test_sizes_and_no_sentence_twice(corpus: DemoCorpus) -> None:
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (40_000, VALID_SIZE, TEST_SIZE)
    english = [pair[0] for pair in corpus.train + corpus.valid + corpus.test]
    assert len(set(english)) == len(english)


def test_the_seed_alone_decides(corpus: DemoCorpus) -> None:
    """The same seed draws the same again, and the held-out pairs do not depend on `count`."""
    same, other = demo_pairs(0, 300), demo_pairs(8, 300)
    assert same == DemoCorpus(corpus.train[:300], corpus.valid, corpus.test)
    assert other.train != same.train
    assert other.test != same.test


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_pythons_hash_seed_does_not_matter(hash_seed: str) -> None:
    program = (
        "from random import Random; from jumok.demo.pairs import draw_sentence, HELD_OUT; rng = Random(0);"
        "print([draw_sentence(rng).korean for _ in range(300)], sorted(HELD_OUT))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    rng = Random(0)
    assert run.stdout.decode().strip() == f"{[draw_sentence(rng).korean for _ in range(300)]} {sorted(HELD_OUT)}"


def test_no_held_out_combination_is_trained_and_each_held_out_pair_has_one(
    corpus: DemoCorpus, drawn: list[Sentence]
) -> None:
    met = {sentence.english: sentence.combinations for sentence in (*famous_sentences(), *drawn)}
    assert not any(met[english] & HELD_OUT for english, _ in corpus.train)
    assert all(met[english] & HELD_OUT for english, _ in corpus.valid + corpus.test)


def test_one_sentence_has_one_set_of_combinations(drawn: list[Sentence]) -> None:
    """Else it could be trained as one thing and held out as another."""
    met: dict[str, frozenset[tuple[str, str, str]]] = {}
    for sentence in drawn:
        assert met.setdefault(sentence.english, sentence.combinations) == sentence.combinations, sentence.english


def test_held_out_words_do_not_even_stand_side_by_side_in_training(corpus: DemoCorpus) -> None:
    """The same promise, read off the sentences without the grammar's help."""
    banned = {
        f"{first} {article}{second}".lower()
        for kind, first, second in HELD_OUT
        for article in ("", "the ", "a ", "an ")
        if kind in ("object", "quality")
    }
    said = {f"the {noun} {be} {a}".lower() for kind, a, noun in HELD_OUT if kind == "quality" for be in ("is", "was")}
    for english, _ in corpus.train:
        text = words(english)
        runs = {" ".join(text[i : i + size]) for size in (2, 3, 4) for i in range(len(text))}
        assert not runs & banned, english
        assert " ".join(text[:4]) not in said, english


def test_every_word_of_the_held_out_part_is_trained_often(corpus: DemoCorpus) -> None:
    trained = Counter(word for english, _ in corpus.train for word in words(english))
    asked = {word for english, _ in corpus.valid + corpus.test for word in words(english)}
    assert {word: trained[word] for word in asked if trained[word] < 20} == {}


def test_every_syllable_of_the_held_out_part_is_trained(corpus: DemoCorpus) -> None:
    trained = Counter("".join(korean for _, korean in corpus.train))
    asked = set("".join(korean for _, korean in corpus.valid + corpus.test))
    assert {syllable: trained[syllable] for syllable in asked if trained[syllable] < 5} == {}


def test_about_one_combination_in_twenty_is_held_out_and_no_word_loses_much() -> None:
    combinations = set(all_combinations())
    assert combinations >= HELD_OUT
    assert 0.045 < len(HELD_OUT) / len(combinations) < 0.055
    assert set(FAMOUS_COMBINATIONS) < HELD_OUT
    partners = Counter((kind, word) for kind, *pair in combinations for word in pair)
    lost = Counter((kind, word) for kind, *pair in HELD_OUT for word in pair)
    assert all(lost[word] <= 0.2 * partners[word] for word in lost)


def test_combinations_that_choose_the_korean_verb_are_never_held_out() -> None:
    chosen_by_object = {verb.name for verb in VERBS if verb.by_object}
    assert chosen_by_object == {"wear", "play"}
    assert not any(kind == "object" and verb in chosen_by_object for kind, verb, _ in HELD_OUT)


def test_drawn_sentences_meet_in_known_combinations_only(drawn: list[Sentence]) -> None:
    """What is not listed could not be held out."""
    known = set(all_combinations())
    lexical = {("object", verb.name, noun) for verb in VERBS for noun in verb.by_object}
    unknown = {c for sentence in drawn for c in sentence.combinations} - known - lexical
    assert {c for c in unknown if not (c[0] == "subject" and c[2] == "do (intransitive)")} == set()


def test_english_determines_korean(drawn: list[Sentence]) -> None:
    korean: dict[str, str] = {}
    for sentence in drawn:
        assert korean.setdefault(sentence.english, sentence.korean) == sentence.korean, sentence.english


def test_the_grammar_has_hundreds_of_thousands_of_sentences(drawn: list[Sentence]) -> None:
    """Were there only N equally likely ones, n draws would repeat about n²/2N times; unequal ones repeat more."""
    repeated = len(drawn) - len({sentence.english for sentence in drawn})
    assert len(drawn) ** 2 / (2 * repeated) > 200_000


def test_sentences_are_well_formed(drawn: list[Sentence]) -> None:
    english_form = re.compile(r"[A-Z][A-Za-z']*( [A-Za-z']+)*(, sir|, my friend)?[.?]")
    korean_form = re.compile(r"[가-힣]+( [가-힣]+)*[.?]")
    for sentence in drawn:
        assert english_form.fullmatch(sentence.english), sentence
        assert korean_form.fullmatch(sentence.korean), sentence
        assert sentence.english[-1] == sentence.korean[-1]
        assert 2 <= len(sentence.english.split()) <= 20


def test_the_vocative_decides_the_ending(drawn: list[Sentence]) -> None:
    for sentence in drawn:
        end = sentence.korean[:-1]
        if ", sir" in sentence.english:
            assert end.endswith(("니다", "니까", "십시오")), sentence
        elif ", my friend" in sentence.english:
            assert not end.endswith(("요", "니다", "니까", "시오")), sentence
        else:
            assert end.endswith("요"), sentence


def test_a_and_an(drawn: list[Sentence]) -> None:
    for sentence in drawn:
        for article, following in re.findall(r"\b(an?) (\w+)", sentence.english.lower()):
            assert (article == "an") == (following[0] in "aeiou" or following == "honest"), sentence.english


def test_famous_sentences_open_the_test_set(corpus: DemoCorpus) -> None:
    assert tuple(corpus.test[: len(FAMOUS)]) == FAMOUS
    assert FAMOUS == (
        ("I am a student.", "저는 학생이에요."),
        (
            "The animal didn't cross the street because it was too tired.",
            "그 동물은 너무 피곤해서 길을 건너지 않았어요.",
        ),
        (
            "The animal didn't cross the street because it was too wide.",
            "그 동물은 길이 너무 넓어서 건너지 않았어요.",
        ),
    )
    assert [sentence.combinations & HELD_OUT for sentence in famous_sentences()] == [{c} for c in FAMOUS_COMBINATIONS]


def test_what_it_means_follows_from_the_adjective() -> None:
    """No adjective explains now the one who acts, now what is acted on."""
    reasons = [*WHY.values(), *WHY_NOT.values()]
    of_subjects = {adjective.english for why in reasons for adjective in why.about_subject}
    of_objects = {adjective.english for why in reasons for adjective in why.about_object}
    assert of_subjects
    assert of_objects
    assert of_subjects.isdisjoint(of_objects)


def test_it_is_ambiguous_until_the_adjective() -> None:
    """Many sentences share everything up to the last word, and differ in what "it" is."""
    rng = Random(3)
    about_subject: set[str] = set()
    about_object: set[str] = set()
    for _ in range(20_000):
        sentence = because(Draw(rng, Level.POLITE))
        beginning, _, _ = sentence.english.rpartition(" ")
        object_is_subject_of_reason = re.search(r"[이가] (너무 |아주 )?\S+서 ", sentence.korean)
        (about_object if object_is_subject_of_reason else about_subject).add(beginning)
    assert len({text for text in about_subject & about_object if " it " in text}) > 100


@pytest.mark.parametrize(
    ("level", "korean"),
    [
        (Level.CASUAL, "나는 학생이야."),
        (Level.POLITE, "저는 학생이에요."),
        (Level.FORMAL, "저는 학생입니다."),
    ],
)
def test_i_am_a_student_at_every_level(level: Level, korean: str) -> None:
    subject = Draw(Random(0), level).pronoun("I")
    assert say_identity(level, subject, NOUNS["student"], Tense.PRESENT).korean == korean


def the(noun: str, subject: bool = False) -> Phrase:
    return Phrase(f"the {noun}", ("그 " if subject else "") + NOUNS[noun].korean, (NOUNS[noun],))


READ = Clause(the("student", subject=True), VERB["read"], Form.PAST, object=the("book"))
NEGATED = {
    Form.PAST: ("The student didn't read the book", "그 학생은 책을 읽지 않았어요"),
    Form.PRESENT: ("The student doesn't read the book", "그 학생은 책을 읽지 않아요"),
    Form.PROGRESSIVE: ("The student isn't reading the book", "그 학생은 책을 읽고 있지 않아요"),
    Form.FUTURE: ("The student won't read the book", "그 학생은 책을 읽지 않을 거예요"),
    Form.GOING: ("The student isn't going to read the book", "그 학생은 책을 읽지 않을 거예요"),
    Form.CAN: ("The student can't read the book", "그 학생은 책을 읽을 수 없어요"),
    Form.COULD: ("The student couldn't read the book", "그 학생은 책을 읽을 수 없었어요"),
    Form.WANT: ("The student doesn't want to read the book", "그 학생은 책을 읽고 싶어 하지 않아요"),
    Form.MUST: ("The student doesn't have to read the book", "그 학생은 책을 읽지 않아도 돼요"),
}
AFFIRMED = {
    Form.PAST: ("The student read the book", "그 학생은 책을 읽었어요"),
    Form.PRESENT: ("The student reads the book", "그 학생은 책을 읽어요"),
    Form.PROGRESSIVE: ("The student is reading the book", "그 학생은 책을 읽고 있어요"),
    Form.FUTURE: ("The student will read the book", "그 학생은 책을 읽을 거예요"),
    Form.GOING: ("The student is going to read the book", "그 학생은 책을 읽을 거예요"),
    Form.CAN: ("The student can read the book", "그 학생은 책을 읽을 수 있어요"),
    Form.COULD: ("The student could read the book", "그 학생은 책을 읽을 수 있었어요"),
    Form.WANT: ("The student wants to read the book", "그 학생은 책을 읽고 싶어 해요"),
    Form.MUST: ("The student has to read the book", "그 학생은 책을 읽어야 해요"),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("negative", [False, True])
def test_every_form_in_both_languages(form: Form, negative: bool) -> None:
    clause = replace(READ, form=form, negative=negative)
    english, korean = (NEGATED if negative else AFFIRMED)[form]
    assert english_clause(clause) == english[0].lower() + english[1:]
    assert korean_clause(clause, Level.POLITE) == korean


@pytest.mark.parametrize(
    ("verb", "form", "korean"),
    [
        ("eat", Form.PAST, "사과를 드셨습니까"),
        ("eat", Form.PROGRESSIVE, "사과를 드시고 계십니까"),
        ("eat", Form.WANT, "사과를 드시고 싶으십니까"),
        ("buy", Form.PAST, "사과를 사셨습니까"),
        ("buy", Form.PROGRESSIVE, "사과를 사고 계십니까"),
        ("buy", Form.CAN, "사과를 사실 수 있습니까"),
        ("buy", Form.MUST, "사과를 사셔야 합니까"),
        ("buy", Form.FUTURE, "사과를 사실 겁니까"),
        ("like", Form.PRESENT, "사과를 좋아하십니까"),
    ],
)
def test_sir_is_honoured(verb: str, form: Form, korean: str) -> None:
    you = Draw(Random(0), Level.FORMAL).pronoun("you")
    clause = Clause(you, VERB[verb], form, object=the("apple"))
    assert korean_clause(clause, Level.FORMAL, question=True) == korean


@pytest.mark.parametrize(
    ("verb", "noun", "korean"),
    [
        ("wear", "hat", "모자를 썼어요"),
        ("wear", "coat", "코트를 입었어요"),
        ("wear", "shoes", "신발을 신었어요"),
        ("wear", "gloves", "장갑을 꼈어요"),
        ("play", "piano", "피아노를 쳤어요"),
        ("play", "violin", "바이올린을 켰어요"),
        ("play", "soccer", "축구를 했어요"),
        ("enter", "forest", "숲에 들어갔어요"),
        ("run to", "river", "강으로 달려갔어요"),
        ("run to", "school", "학교로 달려갔어요"),
    ],
)
def test_the_object_chooses_verb_and_particle(verb: str, noun: str, korean: str) -> None:
    clause = Clause(the("student", subject=True), VERB[verb], Form.PAST, object=the(noun))
    assert korean_clause(clause, Level.POLITE) == f"그 학생은 {korean}"


@pytest.mark.parametrize(
    ("verb", "noun", "korean"),
    [("know", "song", "노래를 몰라요"), ("have", "car", "자동차가 없어요"), ("find", "key", "열쇠를 찾지 못해요")],
)
def test_verbs_with_a_negation_of_their_own(verb: str, noun: str, korean: str) -> None:
    clause = Clause(the("student", subject=True), VERB[verb], Form.PRESENT, negative=True, object=the(noun))
    assert korean_clause(clause, Level.POLITE) == f"그 학생은 {korean}"


def test_because_in_every_person() -> None:
    draw = Draw(Random(0), Level.POLITE)
    we = replace(READ, subject=draw.pronoun("we"), negative=True)
    sentence = say_because(draw, we, ADJECTIVES["busy"], ("", ""), about_object=False)
    assert (sentence.english, sentence.korean) == (
        "We didn't read the book because we were busy.",
        "우리는 바빠서 책을 읽지 않았어요.",
    )
    about = say_because(draw, we, ADJECTIVES["difficult"], ("too", "너무"), about_object=True)
    assert (about.english, about.korean) == (
        "We didn't read the book because it was too difficult.",
        "우리는 책이 너무 어려워서 읽지 않았어요.",
    )


def test_selections_of_nouns() -> None:
    food = {noun.english for noun in select_nouns("food")}
    assert {noun.english for noun in select_nouns("food -soup desk")} == food - {"soup"} | {"desk"}
    with pytest.raises(KeyError):
        select_nouns("foot")


def test_the_lexicon_is_big_enough() -> None:
    assert len(NOUNS) >= 60
    assert len(VERBS) >= 40
    assert len(ADJECTIVES) >= 30


def test_an_adjective_that_only_stands_before_nouns_ends_no_sentence() -> None:
    with pytest.raises(ValueError, match="only stands before a noun"):
        _ = ADJECTIVES["new"].word


def test_written_files_hold_the_pairs(tmp_path: Path, corpus: DemoCorpus) -> None:
    folder = tmp_path / "new" / "demo"
    written = write_demo_corpus(folder, count=200)
    assert written == DemoCorpus(corpus.train[:200], corpus.valid, corpus.test)
    for name, pairs in (("train", written.train), ("valid", written.valid), ("test", written.test)):
        english, korean = (
            (tmp_path / "new" / "demo" / f"{name}.{side}").read_bytes().decode() for side in ("en", "ko")
        )
        assert english.endswith("\n")
        assert "\r" not in english
        assert list(zip(english.splitlines(), korean.splitlines(), strict=True)) == pairs


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match="taken"):
        write_demo_corpus(tmp_path / "taken", count=1)


@pytest.mark.parametrize("count", [0, -1])
def test_no_pairs_is_refused(count: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        demo_pairs(count=count)


def test_more_pairs_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one sentence left, the grammar has nothing new to say."""
    famous = famous_sentences()[0]
    monkeypatch.setattr("jumok.demo.pairs.draw_sentence", lambda _: famous)
    with pytest.raises(InputError, match="fewer than 10 training pairs"):
        demo_pairs(count=10)
