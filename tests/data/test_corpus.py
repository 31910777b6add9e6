from __future__ import annotations

import errno
import io
import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jumok.data.corpus import Corpus, open_corpus, prepare_corpus
from jumok.data.epochs import TranslationEpochs
from jumok.data.examples import Example, ExampleKind, Rejections
from jumok.data.kinds import PAIRS, PASSAGES, TEXTS_WITH_LABELS, reading_with
from jumok.data.reading import lines, tables
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.pairs import UnequalLengthError
from jumok.data.split import HELD_OUT_SHARE
from jumok.errors import ChangedDataError, InputError, WriteError
from jumok.tasks import ENCODERS, EncoderEntry
from jumok.tokenizer import UNK

WORDS = ("사과", "나무", "apple", "tree", "blue", "집", "house", "바다", "sea", "산")


def write_corpus(directory: Path, pairs: int, seed: int = 0) -> list[Path]:
    """Pairs whose target is the source backwards, so that a shifted pair shows."""
    draw = random.Random(seed)
    sources = [" ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 9))) + f" {n}" for n in range(pairs)]
    paths = [directory / "a.src", directory / "a.tgt"]
    for path, rows in zip(paths, (sources, [source[::-1] for source in sources]), strict=True):
        path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    directory = tmp_path_factory.mktemp("corpus")
    return prepare_corpus(PAIRS, directory / "store", write_corpus(directory, 400))


def pairs_of(corpus: Corpus) -> list[tuple[str, str]]:
    columns = [[corpus.train.example(name, i) for i in range(len(corpus.train))] for name in ("source", "target")]
    return list(zip(*(corpus.tokenizer.decode(column) for column in columns), strict=True))


def test_every_pair_is_learned_from_or_held_out_and_none_is_both(corpus: Corpus) -> None:
    train, valid = pairs_of(corpus), [(example.inputs[0], example.inputs[1]) for example in corpus.valid]
    assert len(train) + len(valid) == 400
    assert len(valid) == int(400 * HELD_OUT_SHARE)
    assert not {source for source, _ in train} & {source for source, _ in valid}
    assert all(target == source[::-1] for source, target in train + valid)


def test_lines_lead_back_to_the_file(corpus: Corpus) -> None:
    stored = [corpus.train.example("line", i)[0] for i in range(len(corpus.train))]
    numbers = [int(source.rpartition(" ")[2]) + 1 for source, _ in pairs_of(corpus)]
    assert stored == numbers


def test_it_is_made_once_and_again_when_a_file_or_a_setting_changes(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 60)
    first = prepare_corpus(PAIRS, tmp_path / "store", paths)
    made = (tmp_path / "store" / "prepared.json").stat().st_mtime_ns
    again = prepare_corpus(PAIRS, tmp_path / "store", paths)
    assert (tmp_path / "store" / "prepared.json").stat().st_mtime_ns == made
    assert again.facts == first.facts
    assert pairs_of(again) == pairs_of(first)
    assert list(again.valid) == list(first.valid)
    assert prepare_corpus(PAIRS, tmp_path / "store", paths, seed=5).facts["fingerprint"] != first.facts["fingerprint"]
    with open(paths[0], "a", encoding="utf-8") as file:
        file.write("one more\n")
    with open(paths[1], "a", encoding="utf-8") as file:
        file.write("erom eno\n")
    assert prepare_corpus(PAIRS, tmp_path / "store", paths).facts["examples"] + 3 >= 61


@pytest.mark.parametrize("name", ["tokenizer.model", "valid.jsonl", "prepared.json", "train/store.json"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00damage"])
def test_what_is_missing_or_damaged_is_made_again(tmp_path: Path, name: str, damage: bytes | None) -> None:
    paths = write_corpus(tmp_path, 60)
    first = prepare_corpus(PAIRS, tmp_path / "store", paths)
    valid = list(first.valid)
    file = tmp_path / "store" / name
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    again = prepare_corpus(PAIRS, tmp_path / "store", paths)
    assert again.facts == first.facts
    assert pairs_of(again) == pairs_of(first)
    assert list(again.valid) == valid


def test_given_validation_files_are_used_as_they_are(tmp_path: Path) -> None:
    train = write_corpus(tmp_path, 50)
    (tmp_path / "valid").mkdir()
    valid = write_corpus(tmp_path / "valid", 7, seed=9)
    corpus = prepare_corpus(PAIRS, tmp_path / "store", train, valid=valid)
    assert (len(corpus.train), len(corpus.valid)) == (50, 7)


def test_a_pair_too_long_to_learn_from_is_counted_and_named(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 50)
    for path in paths:
        with open(path, "a", encoding="utf-8") as file:
            file.write("long " * 300 + "\n")
    facts = prepare_corpus(replace(PAIRS, longest=100), tmp_path / "store", paths).facts
    assert facts["rejected"]["total"] == 1
    assert "a.src:51" in str(facts["rejected"])
    assert "longer than 100 tokens" in str(facts["rejected"])


def test_standard_input_is_kept_because_it_is_read_more_than_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"word {n}\t{n} drow\n" for n in range(40))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(rows.encode())))
    corpus = prepare_corpus(PAIRS, tmp_path / "store", ["-"])
    assert len(corpus.train) + len(corpus.valid) == 40


@pytest.mark.parametrize("count", [1, 5])
def test_one_sentence_however_often_is_not_a_corpus(tmp_path: Path, count: int) -> None:
    for name in ("a.src", "a.tgt"):
        (tmp_path / name).write_text("the same\n" * count, encoding="utf-8")
    with pytest.raises(InputError, match="at least two different texts"):
        prepare_corpus(PAIRS, tmp_path / "store", [tmp_path / "a.src", tmp_path / "a.tgt"])


def test_files_of_unequal_length_leave_nothing_half_made(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 30)
    with open(paths[1], "a", encoding="utf-8") as file:
        file.write("too many\n")
    with pytest.raises(UnequalLengthError, match=r"Look around .*a\.tgt:31: it seems to be the first line without"):
        prepare_corpus(PAIRS, tmp_path / "store", paths)
    assert list((tmp_path / "store").iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.en"):
        prepare_corpus(PAIRS, tmp_path / "store", [tmp_path / "nowhere.en", tmp_path / "nowhere.ko"])


def test_an_epoch_is_a_function_of_its_number_and_can_begin_anywhere(corpus: Corpus) -> None:
    epochs = TranslationEpochs(corpus, tokens=120, seed=4)
    whole = list(epochs.batches(2, range(epochs.size(2))))
    assert sorted(line for batch in whole for line in batch.lines) == sorted(
        corpus.train.example("line", i)[0] for i in range(len(corpus.train))
    )
    rest = list(TranslationEpochs(corpus, tokens=120, seed=4).batches(2, range(5, epochs.size(2))))
    assert all(np.array_equal(a.target_out, b.target_out) for a, b in zip(whole[5:], rest, strict=True))
    assert epochs.digest(2) == TranslationEpochs(corpus, tokens=120, seed=4).digest(2)
    assert epochs.digest(2) != epochs.digest(3)
    largest = epochs.largest()
    assert largest.source.size + largest.target_in.size >= max(b.source.size for b in whole)


def test_subword_sampling_changes_the_pieces_and_never_the_text(corpus: Corpus) -> None:
    plain = TranslationEpochs(corpus, tokens=300, seed=4)
    sampled = TranslationEpochs(corpus, tokens=300, seed=4, sampling=0.3)
    differences = 0
    for a, b, again in zip(*(each.batches(0, range(each.size(0))) for each in (plain, sampled, sampled)), strict=True):
        texts = [corpus.tokenizer.decode([[int(i) for i in row if i > 3] for row in x.source]) for x in (a, b)]
        assert texts[0] == texts[1]
        assert np.array_equal(b.source, again.source)
        differences += a.source.shape != b.source.shape or not np.array_equal(a.source, b.source)
    assert differences


def test_some_sources_are_in_small_letters_and_targets_never(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 400)
    paths[0].write_text(paths[0].read_text(encoding="utf-8").upper(), encoding="utf-8")
    corpus = prepare_corpus(PAIRS, tmp_path / "store", paths, size=400)
    plain = TranslationEpochs(corpus, tokens=300, seed=4)
    varied = TranslationEpochs(corpus, tokens=300, seed=4, case=0.3)
    everything = range(plain.size(0))
    found = Counter[bool]()
    for a, b in zip(plain.batches(0, everything), varied.batches(0, everything), strict=True):
        assert np.array_equal(a.target_out, b.target_out)
        texts = [corpus.tokenizer.decode([[int(i) for i in row if i > 3] for row in x.source]) for x in (a, b)]
        for before, after in zip(*texts, strict=True):
            assert after in (before, before.lower())
            found[after == before] += 1
    assert 0.15 < found[False] / found.total() < 0.35
    last = everything[-1:]
    [again], [same] = varied.batches(0, last), TranslationEpochs(corpus, tokens=300, seed=4, case=0.3).batches(0, last)
    assert np.array_equal(again.source, same.source)  # whatever came before


def test_token_dropout_hides_other_tokens_of_both_sides_in_every_epoch_and_no_target_to_predict(tmp_path: Path) -> None:
    corpus = prepare_corpus(PAIRS, tmp_path / "store", write_corpus(tmp_path, 400), size=400)
    plain = TranslationEpochs(corpus, tokens=300, seed=4)
    hiding = TranslationEpochs(corpus, tokens=300, seed=4, token_dropout=0.2)
    everything = range(plain.size(0))
    hidden: dict[str, list[bool]] = {"source": [], "target_in": []}
    for a, b in zip(plain.batches(0, everything), hiding.batches(0, everything), strict=True):
        assert np.array_equal(a.target_out, b.target_out)
        for side, found in hidden.items():
            before, after = getattr(a, side), getattr(b, side)
            assert np.array_equal(before[before <= 3], after[before <= 3])  # <s>, </s> and padding
            assert np.all((after == before) | (after == UNK))
            found += (after == UNK)[before > 3].tolist()
    shares = [sum(found) / len(found) for found in hidden.values()]
    assert all(0.17 < share < 0.23 for share in shares)
    again = TranslationEpochs(corpus, tokens=300, seed=4, token_dropout=0.2)
    [last], [same] = (each.batches(0, everything[-1:]) for each in (hiding, again))
    assert np.array_equal(last.source, same.source)  # whatever came before
    texts = []
    for epoch in (0, 1):
        rows = [
            row for batch in hiding.batches(epoch, everything) for row in zip(batch.lines, batch.source, strict=True)
        ]
        texts.append({int(line): [number for number in ids.tolist() if number] for line, ids in rows})
    assert sum(texts[0][line] != texts[1][line] for line in texts[0]) > len(texts[0]) / 2


def test_a_validation_pair_too_long_is_left_out_too(tmp_path: Path) -> None:
    train = write_corpus(tmp_path, 50)
    (tmp_path / "valid").mkdir()
    valid = write_corpus(tmp_path / "valid", 7, seed=9)
    for path in valid:
        with open(path, "a", encoding="utf-8") as file:
            file.write("long " * 300 + "\n")
    corpus = prepare_corpus(replace(PAIRS, longest=100), tmp_path / "store", train, valid=valid)
    assert len(corpus.valid) == 7
    assert (tmp_path / "store" / "rejected.tsv").read_text(
        encoding="utf-8"
    ) == f"{valid[0]}:8\tlonger than 100 tokens\n"


def test_everything_left_out_is_named_in_a_file(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 50)
    for path in paths:
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n" * 12)
    corpus = prepare_corpus(PAIRS, tmp_path / "store", paths)
    named = (tmp_path / "store" / "rejected.tsv").read_text(encoding="utf-8").splitlines()
    assert corpus.facts["rejected"]["total"] == 12
    assert [line.split("\t")[0] for line in named] == [f"{paths[0]}:{n}" for n in range(51, 63)]


def damaged(paths: Sequence[Path], lines: range, content: str) -> None:
    """Write this content on the given lines of the second file."""
    rows = paths[1].read_text(encoding="utf-8").split("\n")
    for line in lines:
        rows[line] = content
    paths[1].write_text("\n".join(rows), encoding="utf-8")


@pytest.mark.parametrize(("content", "reason"), [("", "empty side"), ("long " * 600, "longer than 512 tokens")])
def test_if_more_than_a_third_cannot_be_used_nothing_is_written_and_the_reasons_are_named(
    tmp_path: Path, content: str, reason: str
) -> None:
    paths, store = write_corpus(tmp_path, 60), tmp_path / "store"
    prepare_corpus(PAIRS, store, paths)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    damaged(paths, range(10, 40), content)
    said = rf"a\.tgt: (2[89]|30) of (5[89]|60) pairs cannot be used, more than a third:\n\d+ × {reason}: .*a\."
    with pytest.raises(InputError, match=said + r"[^`]*`skip_unusable=True`"):
        prepare_corpus(PAIRS, store, paths)
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before
    facts = prepare_corpus(PAIRS, store, paths, skip_unusable=True).facts
    assert facts["rejected"]["total"] == 30


def test_blank_lines_are_no_loss_and_a_third_is_not_more_than_a_third(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 60)
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8").replace("\n", "\n\n"), encoding="utf-8")
    damaged(paths, range(0, 40, 2), "")
    assert prepare_corpus(PAIRS, tmp_path / "store", paths).facts["rejected"]["total"] == 80
    damaged(paths, range(40, 42), "")
    with pytest.raises(InputError, match="21 of 60 pairs cannot be used"):
        prepare_corpus(PAIRS, tmp_path / "store", paths)


def test_units_of_other_languages_than_those_chosen_are_no_loss(tmp_path: Path) -> None:
    def unit(language: str, n: int) -> str:
        return f'<tu><tuv lang="en"><seg>word {n}</seg></tuv><tuv lang="{language}"><seg>{n} drow</seg></tuv></tu>\n'

    units = [unit(("de", "fr", "ko")[n % 3], n) for n in range(90)]
    (tmp_path / "a.tmx").write_text(f"<tmx><body>\n{''.join(units)}</body></tmx>", encoding="utf-8")
    facts = prepare_corpus(
        reading_with(PAIRS, ReadingOptions(languages=("en", "ko"))), tmp_path / "store", [tmp_path / "a.tmx"]
    ).facts
    assert facts["rejected"]["reasons"]["not in both languages"]["count"] == 60
    assert facts["examples"] + facts["valid_examples"] == 30
    with pytest.raises(InputError, match="60 of 90 pairs cannot be used"):  # nobody said that German is meant
        prepare_corpus(PAIRS, tmp_path / "store", [tmp_path / "a.tmx"])


def test_a_validation_file_of_which_more_than_a_third_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "valid.tsv").write_text("one\ttwo\nno tab\nno tab\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"valid\.tsv: 2 of 3 pairs cannot be used"):
        prepare_corpus(PAIRS, tmp_path / "store", write_corpus(tmp_path, 30), valid=[tmp_path / "valid.tsv"])


def test_of_plain_text_lines_are_counted_not_passages(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"some words in a line\n" * 200 + b"\xff\n" * 90 + b"other words\n")
    assert prepare_corpus(PASSAGES, tmp_path / "store", [tmp_path / "a.txt"]).facts["rejected"]["total"] == 90
    (tmp_path / "a.txt").write_bytes(b"some words in a line\n" * 200 + b"\xff\n" * 110 + b"other words\n")
    with pytest.raises(InputError, match=r"110 of 311 lines cannot be used.*\n110 × not valid UTF-8"):
        prepare_corpus(PASSAGES, tmp_path / "store", [tmp_path / "a.txt"])


def test_the_files_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, opened = write_corpus(tmp_path, 300), Counter[str]()
    byte_lines = tables.byte_lines

    def counted(path: str | Path, encoding: str) -> Iterator[bytes | lines.Damage]:
        opened[str(path)] += 1
        return byte_lines(path, encoding)

    monkeypatch.setattr(tables, "byte_lines", counted)
    prepare_corpus(PAIRS, tmp_path / "store", paths)
    assert opened == dict.fromkeys(map(str, paths), 1)
    prepare_corpus(PAIRS, tmp_path / "store", paths)
    assert opened == dict.fromkeys(map(str, paths), 1)


def test_what_the_check_finds_is_among_the_facts(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 300)
    rows = [path.read_text(encoding="utf-8").splitlines() for path in paths]
    for path, texts in zip(paths, rows, strict=True):
        path.write_text("".join(f"{text}\n" for text in [*texts, *texts[:3]]), encoding="utf-8")
    (tmp_path / "valid.tsv").write_text(f"{rows[0][9]}\t{rows[1][9]}\nnew\twen\n", encoding="utf-8")
    facts = prepare_corpus(PAIRS, tmp_path / "store", paths, valid=[tmp_path / "valid.tsv"]).facts
    found = {finding["kind"]: finding for finding in facts["findings"]}
    assert (found["duplicates"]["count"], found["duplicates"]["where"]) == (3, f"{paths[0]}:301")
    assert found["validation-in-training"]["where"] == f"{tmp_path / 'valid.tsv'}:1"
    assert "Remove them" in found["duplicates"]["advice"]
    assert open_corpus(tmp_path / "store", facts["fingerprint"]).facts["findings"] == facts["findings"]


def test_a_corpus_that_is_not_meant_for_a_translator_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"some words {n}\t{('good', 'bad')[n % 2]}\n" for n in range(100))
    (tmp_path / "a.tsv").write_text(rows, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tsv: different texts on one side: only 2.*looks like labels"):
        prepare_corpus(PAIRS, tmp_path / "store", [tmp_path / "a.tsv"])
    assert list((tmp_path / "store").iterdir()) == []


def test_pipes_are_kept_because_they_are_read_more_than_once(tmp_path: Path) -> None:
    files, pipes = write_corpus(tmp_path, 40), [tmp_path / "source-pipe", tmp_path / "target-pipe"]
    for file, pipe in zip(files, pipes, strict=True):
        os.mkfifo(pipe)
        threading.Thread(target=lambda file=file, pipe=pipe: pipe.write_bytes(file.read_bytes()), daemon=True).start()
    corpus = prepare_corpus(PAIRS, tmp_path / "store", pipes)
    assert len(corpus.train) + len(corpus.valid) == 40


def test_another_process_takes_what_was_made(tmp_path: Path) -> None:
    made = prepare_corpus(PAIRS, tmp_path / "store", write_corpus(tmp_path, 40))
    assert open_corpus(tmp_path / "store", made.facts["fingerprint"]).facts == made.facts
    with pytest.raises(InputError, match="All processes"):
        open_corpus(tmp_path / "store", "something else")


def test_a_full_disk_is_explained_and_leaves_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("jumok.data.store._SummedFile.write", full)
    with pytest.raises(WriteError, match=r"train: cannot be written \(No space left on device\).*bytes are free"):
        prepare_corpus(PAIRS, tmp_path / "store", write_corpus(tmp_path, 40))
    assert not list((tmp_path / "store").glob("*train*"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    paths = write_corpus(tmp_path, 40)
    monkeypatch.setattr("jumok.data.source_files.file_digest", forbidden)
    with pytest.raises(InputError, match=r"a\.src: cannot be read \(Permission denied\)"):
        prepare_corpus(PAIRS, tmp_path / "store", paths)


def write_labelled(path: Path, rows: Sequence[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", range(12))
def test_of_every_class_something_is_learned_and_something_is_measured(tmp_path: Path, seed: int) -> None:
    rows = [("common", f"text number {n}") for n in range(7)] + [("rare", "the only one"), ("twice", "same words")]
    file = write_labelled(tmp_path / "a.tsv", [*rows, ("twice", "same words")])
    corpus = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [file], seed=seed)
    assert {"rare": 1, "twice": 2}.items() <= corpus.facts["classes"].items()
    assert {example.label for example in corpus.valid} == {"common"}
    assert len(corpus.train) + len(corpus.valid) == 10


def test_classes_of_one_text_each_leave_nothing_to_measure_on(tmp_path: Path) -> None:
    file = write_labelled(tmp_path / "a.tsv", [(f"class {n}", f"text {n}") for n in range(40)])
    with pytest.raises(InputError, match="Give at least two different texts of a class, or other files with `valid=`"):
        prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [file])
    assert len(prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [file], valid=[file]).classes) == 40
    other = write_labelled(tmp_path / "other.tsv", [("unknown", "x"), ("unknown", "y")])
    with pytest.raises(InputError, match=r"(?s)not among those learned.*Give others, or none"):
        prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [file], valid=[other])


def write_classes(directory: Path) -> Path:
    for label in ("bad", "good"):
        (directory / label).mkdir(parents=True)
        for n in range(6):
            (directory / label / f"{label}-{n}.txt").write_text(f"{label} text number {n}", encoding="utf-8")
    return directory


@pytest.mark.parametrize(("old", "new"), [("bad/bad-5.txt", "good/bad-5.txt"), ("bad", "awful")])
def test_a_text_under_another_class_and_a_class_of_another_name_are_changes(tmp_path: Path, old: str, new: str) -> None:
    data = write_classes(tmp_path / "data")
    before = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data]).facts["fingerprint"]
    (data / old).rename(data / new)
    with pytest.raises(ChangedDataError, match="data: not what this training began with"):
        prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data], expected=before)


def test_the_whole_directory_may_be_elsewhere(tmp_path: Path) -> None:
    data = write_classes(tmp_path / "data")
    before = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data]).facts["fingerprint"]
    data = data.rename(tmp_path / "moved")
    assert prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data], expected=before)


def test_a_text_moved_to_what_is_measured_on_is_a_change(tmp_path: Path) -> None:
    train, valid = write_classes(tmp_path / "train"), tmp_path / "valid"
    (valid / "good").mkdir(parents=True)
    (valid / "good" / "good-9.txt").write_text("good text to measure on", encoding="utf-8")
    before = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [train], valid=[valid]).facts["fingerprint"]
    (train / "good" / "good-5.txt").rename(valid / "good" / "good-5.txt")  # all files in the same order as before
    with pytest.raises(ChangedDataError):
        prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [train], valid=[valid], expected=before)


def test_the_directory_of_a_class_may_be_a_link_and_is_still_watched(tmp_path: Path) -> None:
    data = write_classes(tmp_path / "data")
    (data / "bad").rename(tmp_path / "elsewhere")
    (data / "bad").symlink_to(tmp_path / "elsewhere")
    before = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data]).facts["fingerprint"]
    (tmp_path / "elsewhere" / "bad-0.txt").write_text("another text", encoding="utf-8")
    with pytest.raises(ChangedDataError):
        prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [data], expected=before)


def test_of_a_file_s_name_only_what_decides_the_format_matters(tmp_path: Path) -> None:
    rows = "sep=,\n" + "".join(f"{'ab'[n % 2]},1\ttext number {n}, to be short\n" for n in range(20))
    names = ["a.tsv", "b.txt", "c", "d.csv", "e.CSV"]
    prints = []
    for name in names:
        (tmp_path / name).write_text(rows, encoding="utf-8")
        prints.append(prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [tmp_path / name]).facts["fingerprint"])
    assert prints[0] == prints[1] == prints[2] != prints[3] == prints[4]


def test_a_fingerprint_is_the_same_in_every_version(tmp_path: Path) -> None:
    (tmp_path / "a.src").write_text("".join(f"word {n}\n" for n in range(40)), encoding="utf-8")
    (tmp_path / "a.tgt").write_text("".join(f"{n} drow\n" for n in range(40)), encoding="utf-8")
    (tmp_path / "a.csv").write_text("".join(f"{'ab'[n % 2]},text {n}\n" for n in range(40)), encoding="utf-8")
    pairs = prepare_corpus(PAIRS, tmp_path / "store", [tmp_path / "a.src", tmp_path / "a.tgt"], seed=3)
    assert pairs.facts["fingerprint"] == "5b3787646a7a71d6a32ef5847c37ee4356534f655e0fa48fca11da19cac37c0f"
    texts = prepare_corpus(TEXTS_WITH_LABELS, tmp_path / "store", [tmp_path / "a.csv"], size=400)
    assert texts.facts["fingerprint"] == "b36e60e4b28c6f45450bf43626e767a845eb074b181bea132442fbad4684fef4"


def test_a_store_of_the_first_version_is_taken_as_it_is(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path, 60)
    made = prepare_corpus(PAIRS, tmp_path / "store", paths)
    examples = list(made.valid)
    valid, facts = tmp_path / "store" / "valid.jsonl", tmp_path / "store" / "prepared.json"
    valid.write_text(valid.read_text(encoding="utf-8").replace('"inputs"', '"texts"'), encoding="utf-8")
    values = json.loads(facts.read_text(encoding="utf-8"))
    del values["encoder"]
    facts.write_text(json.dumps(values), encoding="utf-8")
    opened = open_corpus(tmp_path / "store", made.facts["fingerprint"])
    assert list(opened.valid) == examples
    assert opened.tokenizer.to_bytes() == made.tokenizer.to_bytes()


class DigitEncoder:
    """Digits to ids, an encoder that has nothing to do with text."""

    size = 14

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> DigitEncoder:
        assert data == b"digits", origin
        return cls()

    def to_bytes(self) -> bytes:
        return b"digits"

    def encode(self, inputs: Sequence[list[int]], /) -> list[list[int]]:
        return [[4 + digit for digit in digits] for digits in inputs]


def test_examples_need_not_be_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(paths: Sequence[str | Path], rejections: Rejections) -> Iterator[Example]:
        for number, line in enumerate(Path(paths[0]).read_text(encoding="utf-8").splitlines(), 1):
            digits = [int(digit) for digit in line]
            if len(digits) > 9:
                rejections.add("too many digits", f"{paths[0]}:{number}")
            else:
                yield Example((digits, sorted(digits)), f"{paths[0]}:{number}")

    monkeypatch.setitem(ENCODERS, "digits", EncoderEntry("digits", "digits.bin", f"{__name__}:DigitEncoder"))
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(DigitEncoder=DigitEncoder))
    kind = ExampleKind(
        name="numbers",
        columns=("digits", "sorted"),
        files="a file of numbers",
        read=read,
        learn_encoder=lambda examples, size, seed: (DigitEncoder(), "there are ten digits"),
        encoder="digits",
    )
    file = tmp_path / "numbers.txt"
    file.write_text("".join(f"{n * 7919}\n" for n in range(1, 50)) + "12345678901\n", encoding="utf-8")
    made = prepare_corpus(kind, tmp_path / "store", [file])
    assert made.facts["rejected"]["reasons"]["too many digits"]["examples"] == [f"{file}:50"]
    assert (tmp_path / "store" / "digits.bin").read_bytes() == b"digits"
    opened = open_corpus(tmp_path / "store", made.facts["fingerprint"])
    assert isinstance(opened.encoder, DigitEncoder)
    assert list(opened.valid) == list(made.valid)
    assert len(opened.valid) == 2
    assert len(opened.train) == 47
    first = opened.train.example("digits", 0)
    assert opened.train.example("sorted", 0) == sorted(first)
