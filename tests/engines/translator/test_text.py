"""Texts in, texts out: with an engine that echoes, so that every change is seen, and with one that has learned."""

import builtins
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from echo_engine import EchoEngine
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from jumok.bundle import save_bundle
from jumok.cli.models import other_command_named
from jumok.engines.loading import load
from jumok.engines.options import DecodingOptions, Sampling, SearchOptions
from jumok.engines.translator.text import SEGMENT_TOKENS, Result, TextTranslator
from jumok.errors import BundleError, ConfigError, InputError, MissingExtraError
from jumok.model.translator import Translator
from jumok.search.hypothesis import Hypothesis
from jumok.search.loops import RETRY_NGRAM
from jumok.tokenizer import FIRST_BYTE, Tokenizer, is_title_case, normalize

SENTENCE = "cat dog bird ."
one_line = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30)
same_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def hypothesis(ids: list[int], score: float = -0.5, finished: bool = True) -> Hypothesis:
    return Hypothesis(ids, score, [score] * (len(ids) + 1), finished)


@same_fixture
@given(text=one_line)
def test_an_echo_changes_nothing(text: str, echoing: TextTranslator) -> None:
    assume(not is_title_case(text))  # which is translated as small letters
    expected = normalize(text)
    assert echoing.translate(text) == ("" if not expected.strip() else expected)


@same_fixture
@given(lines=st.lists(one_line, max_size=6))
def test_as_many_lines_come_out_as_go_in(lines: list[str], echoing: TextTranslator) -> None:
    assert len(echoing.translate(lines)) == len(lines)
    assert len(echoing.translate("\n".join(lines)).split("\n")) == max(1, len(lines))


def test_str_gives_str_and_list_gives_list(translator: TextTranslator, pairs: list[tuple[str, str]]) -> None:
    assert translator.translate("cat fish sky .") == "고양이 물고기 하늘 ."
    assert translator.translate([source for source, _ in pairs]) == [target for _, target in pairs]
    assert translator.translate([]) == []


@pytest.mark.parametrize("text", ["", " ", "\t \u3000", "\u2028"])
def test_nothing_in_nothing_out_and_the_model_is_not_asked(
    text: str, echo: EchoEngine, echoing: TextTranslator
) -> None:
    assert echoing.translate_batch([text]) == [Result("")]
    assert echo.asked == []


def test_lines_of_a_text_stay_lines(translator: TextTranslator) -> None:
    assert translator.translate("cat .\n\n  dog .\r\nbird .\n") == "고양이 .\n\n  개 .\r\n새 .\n"
    assert translator.translate("\n\n") == "\n\n"
    assert translator.translate_batch(["cat .\ndog ."])[0].segments == 2


def test_an_output_cannot_break_its_line(echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer) -> None:
    [source] = tokenizer.encode([SENTENCE])
    newline, carriage_return = FIRST_BYTE + 10, FIRST_BYTE + 13
    echo.answers[tuple(source)] = {False: hypothesis([newline, *source, newline, carriage_return, *source, newline])}
    assert echoing.translate(SENTENCE).split() == SENTENCE.split() * 2
    assert not {"\n", "\r"} & set(echoing.translate(SENTENCE))


def test_text_is_normalised_as_in_training(echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer) -> None:
    assert echoing.translate("\u1100\u1161") == "가"
    assert echo.asked == [tokenizer.encode(["가"])]


def test_half_a_surrogate_pair_is_refused(echoing: TextTranslator) -> None:
    with pytest.raises(InputError, match="surrogate"):
        echoing.translate("a\ud800")


def test_long_input_is_split_and_says_so(translator: TextTranslator, pairs: list[tuple[str, str]]) -> None:
    sources, targets = ("  ".join(side) for side in zip(*pairs, strict=True))
    [result] = translator.translate_batch([f" {sources}\t"], DecodingOptions(segment_tokens=40))
    assert result.text == f" {targets}\t"
    assert result.segments == len(pairs)
    assert result.finished


def test_input_is_split_at_the_default_limit(echo: EchoEngine, echoing: TextTranslator) -> None:
    assert echoing.translate_batch(["cat " * (SEGMENT_TOKENS - 8)])[0].segments == 1
    long = "Cat dog. " * SEGMENT_TOKENS
    [result] = echoing.translate_batch([long])
    assert result.segments == SEGMENT_TOKENS
    assert result.text == long
    assert len(echo.asked) == 2


def test_lines_longer_than_the_model_is_used_to_are_split_at_sentence_ends(
    echo: EchoEngine, tokenizer: Tokenizer
) -> None:
    used_to_ten = TextTranslator(echo, tokenizer, {"usual_tokens": 10, "multi_sentence_share": 0.5})
    two, one = "Cat dog bird. Tree house river sky.", "cat dog bird tree house river sky cat dog bird tree house"
    results = used_to_ten.translate_batch([two, one, "Cat. Dog."])
    assert [result.segments for result in results] == [2, 1, 1]  # one sentence is not cut for being long
    assert [result.text for result in results] == [two, one, "Cat. Dog."]


TWO = "Cat dog. Bird fish."


@pytest.mark.parametrize(
    ("card", "options", "segments"),
    [
        ({"multi_sentence_share": 0.0}, {}, 2),
        ({"multi_sentence_share": 0.5}, {}, 1),
        ({}, {}, 2),  # an earlier version
        ({"multi_sentence_share": 0.0}, {"split_sentences": False}, 1),
        ({"multi_sentence_share": 0.5}, {"split_sentences": True}, 2),
        ({"multi_sentence_share": 0.0}, {"segment_tokens": 100}, 1),
        ({"multi_sentence_share": 0.0}, {"prefix": "cat"}, 2),
        ({"multi_sentence_share": 0.0}, {"prefix": "Cat dog. Cat"}, 1),  # it may be the start of both
    ],
)
def test_lines_are_split_into_sentences_if_the_model_has_learned_single_ones(
    card: dict[str, Any], options: dict[str, Any], segments: int, echo: EchoEngine, tokenizer: Tokenizer
) -> None:
    translator = TextTranslator(echo, tokenizer, card)
    [result] = translator.translate_batch([TWO], DecodingOptions.of(**options))
    assert (result.text, result.segments, result.too_long) == (TWO, segments, False)


def test_every_sentence_is_told_with_its_translation(translator: TextTranslator, pairs: list[tuple[str, str]]) -> None:
    (first, _), (second, _) = pairs[:2]
    [result] = translator.translate_batch([f" {first} {second}"], DecodingOptions(alignment=True, n_best=2))
    assert [(part.source, part.text) for part in result.parts] == pairs[:2]
    assert result.score == pytest.approx(sum(part.score for part in result.parts) / 2)
    assert result.score >= result.alternatives[0].score
    assert result.alignment is not None
    words = result.alignment.by_word(f" {first} {second}", result.text)
    of_first = len(first.split()), len(pairs[0][1].split())
    assert all((i < of_first[0]) == (j < of_first[1]) for i, j in words)  # no word is aligned with another sentence


@pytest.mark.parametrize("engine_has_learned", ["cat dog .", "bird fish sky ."])
def test_capital_letters_are_translated_as_small_ones(
    engine_has_learned: str, echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer
) -> None:
    [result] = echoing.translate_batch([engine_has_learned.upper()], DecodingOptions(alignment=True))
    assert result.text == engine_has_learned.upper()
    assert echo.asked == [tokenizer.encode([engine_has_learned])]
    assert result.alignment is not None
    assert result.alignment.by_word(engine_has_learned, result.text)


def test_title_case_is_translated_as_small_letters_unless_these_are_names(echo: EchoEngine) -> None:
    tokenizer = Tokenizer.train(["The lazy house sees the dirty river", "Mary sees John", "고양이가 개를"] * 20, 350)
    TextTranslator(echo, tokenizer).translate(["The Lazy House Sees the Dirty River.", "Mary and John"])
    assert echo.asked == [tokenizer.encode(["The lazy house sees the dirty river.", "Mary and John"])]


def test_capital_letters_stay_where_the_vocabulary_has_words_of_them(echo: EchoEngine) -> None:
    tokenizer = Tokenizer.train(["THE CAT SEES THE DOG", "고양이가 개를 본다"] * 20, 330)
    TextTranslator(echo, tokenizer).translate("THE CAT")
    assert echo.asked == [tokenizer.encode(["THE CAT"])]


def test_a_vocabulary_of_small_letters_is_given_small_letters(echo: EchoEngine) -> None:
    tokenizer = Tokenizer.train(["the cat sees the dog", "고양이가 개를 본다"] * 20, 330)
    TextTranslator(echo, tokenizer).translate(["The cat sees.", "고양이"])
    assert echo.asked == [tokenizer.encode(["the cat sees.", "고양이"])]


def test_input_is_split_where_the_engine_ends(tokenizer: Tokenizer) -> None:
    engine = EchoEngine(longest=10)
    text = "cat dog bird fish, tree house river sky, " * 3
    [result] = TextTranslator(engine, tokenizer).translate_batch([text])
    assert result.text == text
    assert max(len(ids) for ids in engine.asked[0]) <= 10


def test_a_loop_is_resolved(echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer) -> None:
    sources = tokenizer.encode(["cat .", "dog .", "bird ."])
    looping = hypothesis(tokenizer.encode(["dog " * 12])[0], finished=False)
    echo.answers[tuple(sources[1])] = {False: looping}
    results = echoing.translate_batch(["cat .", "dog .", "bird ."])
    assert [result.text for result in results] == ["cat .", "dog .", "bird ."]
    assert [result.loop_resolved for result in results] == [False, True, False]
    assert all(result.finished for result in results)
    assert echo.asked == [sources, [sources[1]]]


def test_texts_alone_are_searched_without_scores_and_come_out_the_same(
    echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    [source] = tokenizer.encode(["dog ."])
    better, worse = (
        hypothesis(tokenizer.encode([text])[0], score, False) for text, score in (("cat", -1), ("dog", -2))
    )
    search, asked = EchoEngine.generate, []

    def generate(sources: Any, options: SearchOptions, **others: Any) -> list[list[Hypothesis]]:
        asked.append((options.scores, options.no_repeat_ngram))
        found = search(echo, sources, options, **others)
        return [[best if options.scores else replace(best, score=math.nan)] for [best] in found]

    monkeypatch.setattr(echo, "generate", generate)
    for first, second in ((better, worse), (worse, better)):  # both are cut, so that the score decides
        echo.answers[tuple(source)] = {False: first, True: second}
        asked.clear()
        assert echoing.translate("dog .", beam=1) == "cat"
        assert asked == [(False, 0), (True, RETRY_NGRAM), (True, 0)]
        assert echoing.translate_batch(["dog ."], beam=1)[0].text == "cat"


def test_a_loop_that_stays_says_so(echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer) -> None:
    [source] = tokenizer.encode(["dog ."])
    looping = hypothesis(tokenizer.encode(["dog " * 12])[0], finished=False)
    echo.answers[tuple(source)] = {False: looping, True: looping}
    [result] = echoing.translate_batch(["dog ."])
    assert not result.finished
    assert not result.loop_resolved
    assert echo.asked == [[source], [source]]


@pytest.mark.parametrize("options", [{"no_repeat_ngram": 3}, {"resolve_loops": False}])
def test_no_second_attempt_where_it_is_pointless_or_unwanted(
    options: dict[str, Any], echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer
) -> None:
    [source] = tokenizer.encode(["dog ."])
    cut = hypothesis([300], finished=False)
    echo.answers[tuple(source)] = {True: cut, False: cut}
    [result] = echoing.translate_batch(["dog ."], DecodingOptions.of(**options))
    assert not result.finished
    assert echo.asked == [[source]]


def test_the_prefix_stands_where_a_text_begins(echo: EchoEngine, echoing: TextTranslator, tokenizer: Tokenizer) -> None:
    [prefix] = tokenizer.encode(["개 새"])
    echoing.translate(["cat .\ndog .", "", "bird ."], prefix=" 개 새")
    assert echo.prefixes == [[prefix, [], prefix]]


def test_a_prefix_longer_than_any_output_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="more than the 20 of the longest output"):
        TextTranslator(EchoEngine(longest=20), tokenizer).translate("cat .", prefix="개 새 " * 20)


def test_an_output_begins_with_its_prefix(translator: TextTranslator, pairs: list[tuple[str, str]]) -> None:
    for text in translator.translate([source for source, _ in pairs], prefix="물고기 나무"):
        assert text.startswith("물고기 나무")


def test_bias_pushes_words_in_and_out(echo: EchoEngine, echoing: TextTranslator, translator: TextTranslator) -> None:
    assert translator.translate("cat dog .") == "고양이 개 ."
    assert "고양이" not in translator.translate("cat dog .", bias={"고양이": -30.0})
    assert "나무" in translator.translate("cat dog .", bias={"나무": 30.0})
    echoing.translate("cat .", bias={"▁cat": 1.0})
    assert echo.bias is not None
    assert echoing.tokenizer.pieces(list(echo.bias)) == ["▁cat"]


def test_bias_of_what_is_no_piece_is_refused(echoing: TextTranslator) -> None:
    with pytest.raises(
        ConfigError, match=r'"catfish" is not a token of the vocabulary, but several: ▁cat .*Bias these'
    ):
        echoing.translate("cat", bias={"catfish": 1.0})


def test_an_unknown_option_is_refused(echoing: TextTranslator) -> None:
    with pytest.raises(ConfigError, match='Did you mean "n_best"'):
        echoing.translate("cat", nbest=3)


def test_alternatives_are_ranked(translator: TextTranslator) -> None:
    [result] = translator.translate_batch(["cat dog ."], DecodingOptions(beam=4, n_best=4))
    texts = [result.text, *(alternative.text for alternative in result.alternatives)]
    scores = [result.score, *(alternative.score for alternative in result.alternatives)]
    assert len(set(texts)) == 4
    assert scores == sorted(scores, reverse=True)
    assert translator.translate_batch(["cat dog ."])[0].alternatives == ()


def test_alternatives_of_several_segments(echoing: TextTranslator) -> None:
    """One segment less sure of itself than the other: its second choice costs 2, that of the other 3 and more."""
    [result] = echoing.translate_batch(["cat dog\nbird fish tree"], DecodingOptions(n_best=3))
    assert result.text == "cat dog\nbird fish tree"
    assert [alternative.text for alternative in result.alternatives] == ["cat\nbird fish tree", "cat dog\nbird fish"]
    assert result.score == pytest.approx(-0.1)
    assert [a.score for a in result.alternatives] == pytest.approx([-0.1 - 2 / 2, -0.1 - 3 / 2])


def test_samples_are_repeatable(translator: TextTranslator) -> None:
    options = DecodingOptions(n_best=3, sampling=Sampling(temperature=3.0, seed=1))
    cat, dog = translator.translate_batch(["cat .", "dog ."], options)
    assert translator.translate_batch(["dog ."], options)[0].tokens == dog.tokens
    assert translator.translate_batch(["cat .", "dog ."], options) == [cat, dog]
    assert len({cat.text, *(alternative.text for alternative in cat.alternatives)}) == 3


def test_alignment_runs_over_all_segments(echoing: TextTranslator) -> None:
    [result] = echoing.translate_batch(["cat dog\nbird ."], DecodingOptions(alignment=True))
    assert result.alignment is not None
    assert result.alignment.target == result.tokens == ("▁cat", "▁dog", "▁bird", "▁.")
    assert result.alignment.pairs == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert echoing.translate_batch([""], DecodingOptions(alignment=True))[0].alignment is None
    assert echoing.translate_batch(["cat"])[0].alignment is None


def test_scores_of_given_pairs(translator: TextTranslator, pairs: list[tuple[str, str]]) -> None:
    sources, targets = zip(*pairs, strict=True)
    right, wrong = translator.score(sources, targets), translator.score(sources, targets[1:] + targets[:1])
    assert sum(map(sum, right)) > sum(map(sum, wrong)) + len(pairs)
    with pytest.raises(InputError, match="24 sources and 1 target"):
        translator.score(sources, targets[:1])


@pytest.fixture
def bundle(trained: Translator, tokenizer: Tokenizer, tmp_path: Path) -> dict[str, Any]:
    """The arguments of `save_bundle` for the trained model."""
    weights = {name: tensor.numpy(force=True) for name, tensor in trained.state_dict().items()}
    return {
        "path": tmp_path / "run" / "model",
        "config": trained.config.to_dict(),
        "weights": weights,
        "encoder": ("tokenizer", tokenizer.to_bytes()),
        "card": {"languages": ["en", "ko"]},
    }


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_load_a_bundle_or_a_run(bundle: dict[str, Any], engine: str) -> None:
    save_bundle(**bundle)
    for path in (bundle["path"], str(bundle["path"].parent)):
        translator = load(path, engine)
        assert translator.translate("cat .") == "고양이 ."
        assert translator.card == {"languages": ["en", "ko"], "encoder": "tokenizer"}


@pytest.mark.parametrize(("task", "command"), [("classifier", "jumok classify"), ("language_model", "jumok generate")])
def test_a_bundle_of_another_task_names_its_command_on_the_command_line(
    bundle: dict[str, Any], task: str, command: str
) -> None:
    save_bundle(**bundle | {"config": bundle["config"] | {"task": task}})
    name = task.replace("_", " ")
    with pytest.raises(BundleError, match=rf"is a {name}, not a translator\.$"):
        load(bundle["path"], task="translator")
    with (
        pytest.raises(BundleError, match=rf"is a {name}, not a translator\. Use: {command} -m .*model"),
        other_command_named(bundle["path"]),
    ):
        load(bundle["path"], task="translator")


def test_a_tokenizer_of_another_model_is_refused(bundle: dict[str, Any]) -> None:
    other = Tokenizer.train(["something else entirely"] * 20, 300)
    save_bundle(**bundle | {"encoder": ("tokenizer", other.to_bytes())})
    with pytest.raises(BundleError, match="not trained together"):
        load(bundle["path"])


def test_a_path_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no such model directory"):
        load(tmp_path / "nowhere")


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'torhc.*Did you mean "torch"'):
        load(tmp_path, engine="torhc")


def test_without_torch_the_extra_is_named(bundle: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    save_bundle(**bundle)
    really_import = builtins.__import__

    def without_torch(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "torch" or name.startswith("torch."):
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return really_import(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "jumok.engines.translator.torch")
    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(MissingExtraError, match=r'needs torch, .*pip install "jumok\[train\]"'):
        load(bundle["path"])
