from __future__ import annotations

import json
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumok.errors import BundleError, ConfigError, InputError
from jumok.tokenizer import (
    BOS,
    EOS,
    FIRST_PIECE,
    PAD,
    UNK,
    TextStatistics,
    Tokenizer,
    choose_size,
    normalize,
    vocabulary,
)
from jumok.tokenizer.subwords import SMALL_BATCH

WORDS = [
    "student",
    "students",
    "teacher",
    "school",
    "the",
    "reads",
    "book",
    "학생",
    "학생은",
    "책을",
    "읽는다",
    "学校",
    "で",
]
CORPUS = [" ".join(random.Random(i).choices(WORDS, k=8)) for i in range(200)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(CORPUS, 400)


# Characters that have broken tokenizers before, mixed with ordinary text and with all of Unicode.
awkward = st.sampled_from(
    list(" \t▁▅⁇\0\x01\x7f\x85\u2028\ufeff\ufffd\u3000\xa0\u0301\u1100\u1161\u11a8😀👨\u200d💻\U000f0000é")
)
fragments = st.one_of(awkward, st.sampled_from([*WORDS, "<s>", "</s>", "<unk>", "<0xE2>", "  "]), st.text(max_size=5))
texts = st.lists(fragments, max_size=12).map("".join)


@given(texts)
@example("")
@example(" ")
@example("  two  spaces  ")
@example("▁▁ ▁\U000f0000▁")
@example(unicodedata.normalize("NFD", "학생은 café"))
def test_no_character_is_ever_lost(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode([text])
    assert tokenizer.decode(ids) == [unicodedata.normalize("NFC", text)]
    assert not {PAD, UNK, BOS, EOS} & set(ids[0])
    assert all(0 <= i < tokenizer.size for i in ids[0])


@given(texts, st.integers(0, 2**63))
def test_sampled_pieces_spell_the_same_text(tokenizer: Tokenizer, text: str, seed: int) -> None:
    assert tokenizer.decode(tokenizer.encode_sampled([text], 0.1, seed)) == [normalize(text)]


def test_sampling_follows_its_seed(tokenizer: Tokenizer) -> None:
    first, other = (tokenizer.encode_sampled(CORPUS, 0.1, seed) for seed in (1, 2))
    assert tokenizer.encode_sampled(CORPUS, 0.1, 1) == first
    assert first != other
    assert first != tokenizer.encode(CORPUS)


def test_sampling_is_the_same_in_every_process(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A training that goes on in another process draws what it would have drawn."""
    (tmp_path / "model").write_bytes(tokenizer.to_bytes())
    program = "import json, sys; from pathlib import Path; from jumok.tokenizer import Tokenizer; "
    program += (
        "print(Tokenizer.from_bytes(Path(sys.argv[1]).read_bytes()).encode_sampled(json.load(sys.stdin), 0.1, 7))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model")]
    drawn = subprocess.run(command, input=json.dumps(CORPUS[:50]), capture_output=True, text=True, check=True).stdout
    assert json.loads(drawn) == tokenizer.encode_sampled(CORPUS[:50], 0.1, 7)


def test_many_texts_at_once_equal_one_by_one(tokenizer: Tokenizer) -> None:
    lines = [*CORPUS, "", "▁", "😀"]
    assert len(lines) > SMALL_BATCH
    assert tokenizer.encode(lines) == [tokenizer.encode([line])[0] for line in lines]
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([]) == []


def test_training_is_deterministic_and_silent(capfd: pytest.CaptureFixture[str], tokenizer: Tokenizer) -> None:
    assert Tokenizer.train(iter(CORPUS), 400).to_bytes() == tokenizer.to_bytes()
    assert capfd.readouterr() == ("", "")


def test_words_are_learned_and_ids_are_those_of_the_design(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.pieces(tokenizer.encode(["the book"])[0]) == ["▁the", "▁book"]
    assert FIRST_PIECE < tokenizer.size <= 400


@pytest.mark.parametrize("corpus", [["a"], ["<s> </s>"], ["a\tb▅▁"], ["나는 학생이다"], ["the same line"] * 50_000])
def test_a_corpus_with_little_to_learn_gives_a_smaller_vocabulary(corpus: list[str]) -> None:
    small = Tokenizer.train(corpus, 8000)
    assert small.size < 300
    assert small.decode(small.encode(corpus)) == corpus


def test_frequent_characters_have_pieces_and_rare_ones_are_spelled_in_bytes() -> None:
    trained = Tokenizer.train(["가나다 라마바"] * 1000 + ["희"], 400)
    assert len(trained.encode(["가"])[0]) <= 2
    assert len(trained.encode(["희"])[0]) == 4  # the space before a word, then three bytes


def test_a_large_alphabet_leaves_half_of_the_vocabulary_for_longer_pieces() -> None:
    common = "".join(map(chr, range(0x4E00, 0x4E00 + 50)))
    corpus = [common] * 1_000 + ["".join(map(chr, range(0x5000, 0x5000 + 200)))] * 3
    trained = Tokenizer.train(corpus, FIRST_PIECE + 140)
    pieces = trained.pieces(range(FIRST_PIECE, trained.size))
    assert sum(len(piece) == 1 for piece in pieces) <= 71
    assert any(len(piece) > 1 for piece in pieces)


def test_long_lines_are_learned_from() -> None:
    spaced, unspaced = "attention " * 30_000, "주목한다" * 30_000
    trained = Tokenizer.train([spaced, unspaced], 500)
    assert len(trained.encode(["attention"])[0]) == 1
    assert len(trained.encode(["주목한다" * 4])[0]) <= 5
    assert trained.decode(trained.encode([spaced, unspaced])) == [spaced, unspaced]


def test_a_large_corpus_is_sampled_evenly_and_repeatably(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "SAMPLED_LINES", 100)
    lines = [str(number) for number in range(10_000)]
    sample = vocabulary._sample_lines(lines, 3)
    assert len(set(sample)) == 100
    assert sample == vocabulary._sample_lines(iter(lines), 3) != vocabulary._sample_lines(lines, 4)
    assert 20 < sum(int(line) < 5_000 for line in sample) < 80


def test_saved_and_loaded_it_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.to_bytes())
    assert Tokenizer.from_bytes(path.read_bytes()).to_bytes() == tokenizer.to_bytes()
    assert Tokenizer.from_bytes(path.read_bytes()).encode(CORPUS) == tokenizer.encode(CORPUS)


def test_damaged_bytes_are_refused_or_harmless(tokenizer: Tokenizer) -> None:
    data = tokenizer.to_bytes()
    for bad in (b"", b"no model", data[:-1000], data[: len(data) // 2]):
        with pytest.raises(BundleError, match=r"tokenizer\.model is damaged"):
            Tokenizer.from_bytes(bad)
    draw = random.Random(0)
    for _ in range(200):
        flipped = bytearray(data)
        flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        try:
            Tokenizer.from_bytes(bytes(flipped)).encode(["the student"])
        except BundleError:
            continue


def test_a_foreign_sentencepiece_model_is_refused(tmp_path: Path) -> None:
    import sentencepiece

    prefix = tmp_path / "foreign"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_prefix=prefix, vocab_size=60, minloglevel=2, hard_vocab_limit=False
    )
    with pytest.raises(BundleError, match=r"foreign\.model is damaged or is not a Jumok tokenizer"):
        Tokenizer.from_bytes(prefix.with_suffix(".model").read_bytes(), origin="foreign.model")


def test_bad_requests_say_what_is_wrong(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="no text"):
        Tokenizer.train(["", " \t", "▁"], 400)
    for size in (-5, 3, 262):
        with pytest.raises(ConfigError, match=rf"tokenizer\.size = {size} is too small .* at least 2\d\d"):
            Tokenizer.train(CORPUS, size)
    for call in (tokenizer.encode, lambda lines: Tokenizer.train(lines, 400)):
        with pytest.raises(InputError, match=r"Character 3 of a text is U\+D800"):
            call(["good", "ab\ud800"])


@given(st.lists(st.text()))
def test_statistics_count_what_is_there(lines: list[str]) -> None:
    joined = "".join(map(normalize, lines))
    alphabet = sum(joined.count(character) >= vocabulary.RARE for character in set(joined))
    meter = vocabulary.TextMeter()
    assert list(meter.count(map(normalize, lines))) == list(map(normalize, lines))
    assert meter.statistics() == TextStatistics(len(lines), len(joined.encode()), alphabet)


@given(st.integers(1, 10**11), st.integers(1, 10**11), st.integers(1, 8000))
def test_more_text_gets_a_vocabulary_at_least_as_large(one: int, other: int, alphabet: int) -> None:
    small, large = (choose_size(TextStatistics(1, volume, alphabet))[0] for volume in sorted((one, other)))
    assert 1_000 <= small <= large <= 32_000


def test_the_choice_of_size_gives_its_reason() -> None:
    assert choose_size(TextStatistics(58_000, 4_000_000, 80)) == (
        4_000,
        "at most 4,000 suit its size: 58,000 lines, 4.0 MB, 80 different characters",
    )
    assert choose_size(TextStatistics(58_000, 4_000_000, 80), two_languages=True)[0] == 6_000
    size, reason = choose_size(TextStatistics(1_000, 100_000, 3_000))
    assert size >= FIRST_PIECE + 5_500
    assert "suit its characters" in reason
