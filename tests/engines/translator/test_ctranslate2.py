"""CTranslate2 translates as PyTorch does, or there is no export."""

import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.bundle import load_bundle, save_bundle, successor
from jumok.data.corpus import prepare_corpus
from jumok.data.kinds import PAIRS
from jumok.engines.batching import sorted_batches
from jumok.engines.conversion import SHORTLIST, export
from jumok.engines.ctranslate2_models import wait_for
from jumok.engines.loading import load
from jumok.engines.opening import CERTIFICATE, DIRECTORY, exported_model
from jumok.engines.options import Sampling, SearchOptions
from jumok.engines.translator.ctranslate2 import (
    EFFICIENT_BEAM_TOKENS,
    EFFICIENT_TOKENS,
    LEAST_TOKENS,
    PATIENCE,
    Ctranslate2Translator,
    fast_patience,
)
from jumok.engines.translator.torch import TorchTranslator
from jumok.errors import BundleError, ConfigError
from jumok.model.config import config_from_dict
from jumok.model.translator import Translator
from jumok.recipes.certifying.certificate import Certificate, ParityError, compare, random_sources, require_parity
from jumok.recipes.certifying.translator import MOST_BLEU_LOST_BY_SHORTLIST, translating
from jumok.recipes.export import export_ctranslate2
from jumok.tokenizer import Tokenizer

FROZEN = Path(__file__).parents[2] / "frozen" / "format-1"
SOURCE = Path(__file__).parents[3] / "src"
VARIANTS: list[dict[str, Any]] = [
    {"norm": "post"},
    {"norm": "pre"},
    {"norm": "post", "activation": "gelu", "attention_bias": True},
    {"norm": "pre", "rotary": True},
    {"norm": "pre", "positions": "learned", "max_length": 2048},
    {"norm": "pre", "positions": "learned", "max_length": 40},
    {"norm": "pre", "encoder_layers": 3, "decoder_layers": 1},
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())


def save_model(directory: Path, tokenizer: Tokenizer, **changes: Any) -> Path:
    """A model with weights drawn at random, larger than at the start so that its outputs vary."""
    torch.manual_seed(3)
    sizes = {"vocabulary": tokenizer.size, "d_model": 32, "heads": 4, "d_ff": 48, "dropout": 0.0}
    model = Translator(config_from_dict({**sizes, "encoder_layers": 2, "decoder_layers": 2, **changes}))
    weights = {name: (weight * 2).numpy() for name, weight in model.state_dict().items()}
    config = model.config.to_dict()
    save_bundle(
        directory / "model", config=config, weights=weights, encoder=("tokenizer", tokenizer.to_bytes()), card={}
    )
    return directory / "model"


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_of_the_model_is_exported_exactly(
    tmp_path: Path, tokenizer: Tokenizer, variant: dict[str, Any]
) -> None:
    directory, certificate = export_ctranslate2(save_model(tmp_path, tokenizer, **variant))
    assert certificate["equal"] + certificate["ties"] == certificate["sources"]
    assert (directory / CERTIFICATE).is_file()


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer
) -> tuple[TorchTranslator, Ctranslate2Translator]:
    path = tmp_path_factory.mktemp("exported") / "model"
    shutil.copytree(FROZEN / "model", path)
    directory, _ = export_ctranslate2(path)
    bundle = load_bundle(path)
    original = TorchTranslator.from_bundle(bundle)
    return original, Ctranslate2Translator(directory, bundle, lambda: original, tokenizer=tokenizer)


def sources_of(tokenizer: Tokenizer) -> list[list[int]]:
    lines = (FROZEN / "sources.txt").read_text(encoding="utf-8").splitlines()
    return [ids for ids in tokenizer.encode(lines) if ids]


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_beams_find_the_same(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer, beam: int
) -> None:
    options = SearchOptions(beam=beam, n_best=beam)
    for ours, theirs in zip(*(engine.generate(sources_of(tokenizer), options) for engine in engines), strict=True):
        assert ours[0].ids == theirs[0].ids
        assert theirs[0].score == pytest.approx(
            ours[0].score, abs=1e-3
        )  # CTranslate2 gives the share of a first </s> to the other tokens
        assert len(theirs) == beam


@settings(max_examples=15)
@given(st.data())
def test_any_source_gives_the_same_greedy_output(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer, data: st.DataObject
) -> None:
    source = data.draw(st.lists(st.integers(4, tokenizer.size - 1), min_size=1, max_size=30))
    assert compare(*map(translating, engines), [source]).example is None


def test_prefixes_and_forbidden_repeats(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer
) -> None:
    sources = sources_of(tokenizer)[:3]
    [prefix] = tokenizer.encode(["작은"])
    options = SearchOptions(beam=3, no_repeat_ngram=2)
    for ours, theirs in zip(
        *(engine.generate(sources, options, prefixes=[prefix] * 3) for engine in engines), strict=True
    ):
        assert theirs[0].ids[: len(prefix)] == prefix
        assert ours[0].ids == theirs[0].ids


def test_output_does_not_depend_on_the_batch(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer
) -> None:
    _, exported = engines
    sources = [*sources_of(tokenizer), *random_sources(tokenizer)[:6]]
    options, lengths = SearchOptions(beam=2), [len(source) for source in sources]
    assert max(map(len, sorted_batches(lengths, exported._budget(sum(lengths), options), options.rows))) > 2
    together = exported.generate(sources, SearchOptions(beam=2))
    alone = [exported.generate([source], SearchOptions(beam=2))[0] for source in sources]
    assert [found[0].ids for found in together] == [found[0].ids for found in alone]


def test_batches_are_efficient_but_enough_for_all_workers(
    engines: tuple[TorchTranslator, Ctranslate2Translator],
) -> None:
    _, exported = engines
    workers, found = exported._model.workers, []
    for tokens in (100, 900, 4000, 12_000, 24_000, 200_000):  # for every worker
        budget = exported._budget(tokens * workers, SearchOptions(beam=1))
        assert budget == LEAST_TOKENS or tokens / budget >= 2 - 0.01
        found.append(budget)
    assert found == [LEAST_TOKENS, 450, 2000, *[EFFICIENT_TOKENS] * 3]
    with_beam = exported._budget(200_000, SearchOptions(beam=2, batch_tokens=100_000))
    assert with_beam == 2 * EFFICIENT_BEAM_TOKENS
    assert exported._budget(200_000, SearchOptions(beam=5)) == SearchOptions().batch_tokens, "never more than allowed"


def test_greedy_outputs_are_the_same_without_scores(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer
) -> None:
    _, exported = engines
    sources = sources_of(tokenizer)
    scored, plain = (
        [best for [best] in exported.generate(sources, SearchOptions(beam=1, scores=scores))]
        for scores in (True, False)
    )
    assert [best.ids for best in plain] == [best.ids for best in scored]
    assert all(math.isnan(best.score) for best in plain)
    assert all(best.score < 0 for best in scored)
    with_beam = exported.generate(sources[:2], SearchOptions(beam=2, scores=False))
    assert with_beam == exported.generate(sources[:2], SearchOptions(beam=2)), "nothing would be saved"


def test_pytorch_keeps_its_threads_when_an_export_is_opened_and_used(tmp_path: Path) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    export_ctranslate2(tmp_path / "model")
    code = """if True:
        import sys, torch, jumok
        before = torch.get_num_threads()
        for _ in range(2):
            jumok.load(sys.argv[1], "ctranslate2").translate("cat .")
            assert torch.get_num_threads() == before, (torch.get_num_threads(), before)
        """
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")], check=True, env=environment)


def test_what_ctranslate2_cannot_do_is_done_by_pytorch(
    engines: tuple[TorchTranslator, Ctranslate2Translator], tokenizer: Tokenizer
) -> None:
    original, exported = engines
    sources = sources_of(tokenizer)[:2]
    options = SearchOptions(sampling=Sampling(seed=4))
    assert exported.generate(sources, options) == original.generate(sources, options)
    biased = exported.generate(sources, SearchOptions(beam=1), bias={300: 5.0})
    assert biased == original.generate(sources, SearchOptions(beam=1), bias={300: 5.0})
    np.testing.assert_array_equal(exported.vectors(sources), original.vectors(sources))


def test_alignments_are_those_of_pytorch(tmp_path: Path, tokenizer: Tokenizer) -> None:
    def no_fallback() -> TorchTranslator:
        raise AssertionError("CTranslate2 aligns by itself")

    sources = [*sources_of(tokenizer), [300] * 40, [5]]
    targets = [*sources_of(tokenizer)[1:], [], [301] * 9, [7, 300, 8, 301]]  # of other lengths, and unlikely
    for layers in (1, 3):
        path = save_model(tmp_path / str(layers), tokenizer, decoder_layers=layers)
        directory = export(load_bundle(path), "float32", lambda _: {})
        exported = Ctranslate2Translator(directory, load_bundle(path), no_fallback, tokenizer=tokenizer)
        ours = TorchTranslator.from_bundle(load_bundle(path)).align(sources, targets)
        for one, other in zip(ours, exported.align(sources, targets), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
        assert exported.align([], []) == []


def test_an_alignment_beyond_the_exported_positions_is_pytorchs(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre", positions="learned", max_length=40)
    directory = export(load_bundle(path), "float32", lambda _: {})
    original = TorchTranslator.from_bundle(load_bundle(path))
    exported = Ctranslate2Translator(directory, load_bundle(path), lambda: original, tokenizer=tokenizer)
    for one, other in zip(*(each.align([[5] * 39], [[7] * 39]) for each in (original, exported)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_int8_is_certified_by_bleu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    lines = [(FROZEN / name).read_text(encoding="utf-8").splitlines() for name in ("sources.txt", "translations.txt")]
    probe = [pair for pair in zip(*lines, strict=True) if all(pair)]
    monkeypatch.setattr(
        "jumok.recipes.certifying.translator.MOST_BLEU_LOST", -100.0
    )  # what int8 costs depends on the processor
    with pytest.raises(ParityError, match="is lost"):
        export_ctranslate2(tmp_path / "model", quantization="int8", probe=probe)
    assert not (tmp_path / "model" / DIRECTORY).exists()
    monkeypatch.setattr("jumok.recipes.certifying.translator.MOST_BLEU_LOST", 50.0)
    directory, certificate = export_ctranslate2(tmp_path / "model", quantization="int8", probe=probe)
    assert certificate["bleu_exported"] > 50
    assert load(tmp_path / "model", "ctranslate2", task="translator").translate(probe[0][0])
    exact, _ = export_ctranslate2(save_model(tmp_path / "exact", load(tmp_path / "model", task="translator").tokenizer))
    assert (directory / "model.bin").stat().st_size < (exact / "model.bin").stat().st_size


def test_a_shortlist_that_does_harm_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    files = [FROZEN / name for name in ("sources.txt", "translations.txt")]
    probe = [pair for pair in zip(*(file.read_text("utf-8").splitlines() for file in files), strict=True) if all(pair)]
    tokenizer = Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())
    train = prepare_corpus(PAIRS, tmp_path / "store", files, encoder=tokenizer).train
    monkeypatch.setattr("jumok.recipes.certifying.translator.SHORTLISTS", [(0, 0, 1.0)])
    directory, certificate = export_ctranslate2(tmp_path / "model", probe=probe, train=train)
    assert certificate["shortlist"] is None
    assert certificate["bleu_fast"] < certificate["bleu_beam"] - MOST_BLEU_LOST_BY_SHORTLIST
    assert not (directory / SHORTLIST).exists()
    with pytest.raises(BundleError, match="no shortlist"):
        load(tmp_path / "model", "ctranslate2", task="translator", fast=True)
    monkeypatch.setattr("jumok.recipes.certifying.translator.SHORTLISTS", [(0, 0, 1.0), (50, 300, 1.5)])
    _, certificate = export_ctranslate2(tmp_path / "model", probe=probe, train=train)
    assert certificate["shortlist"] == {"candidates": 50, "frequent": 300, "patience": 1.5}
    assert fast_patience(directory) == 1.5
    assert load(tmp_path / "model", "ctranslate2", task="translator", fast=True).engine._fast == 1.5
    (directory / CERTIFICATE).write_text('{"weights": "of an export that had no such choice"}', encoding="utf-8")
    assert fast_patience(directory) == PATIENCE
    _, certificate = export_ctranslate2(tmp_path / "model", train=train)
    assert "shortlist" not in certificate  # nothing to certify it with
    _, certificate = export_ctranslate2(tmp_path / "model", probe=probe, train=train)
    assert certificate["bleu_fast"] >= certificate["bleu_beam"] - MOST_BLEU_LOST_BY_SHORTLIST
    assert load(tmp_path / "model", "ctranslate2", task="translator", fast=True).translate(probe[0][0])
    nonsense = [(source, "무엇도 아닌 것") for source, _ in probe]
    _, certificate = export_ctranslate2(tmp_path / "model", probe=nonsense, train=train)
    assert "shortlist" not in certificate  # a model that cannot translate yet has no use for one


def test_a_prefix_is_kept_with_a_shortlist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    files = [FROZEN / name for name in ("sources.txt", "translations.txt")]
    sources, translations = (file.read_text("utf-8").splitlines() for file in files)
    tokenizer = Tokenizer.from_bytes((FROZEN / "model" / "tokenizer.model").read_bytes())
    train = prepare_corpus(PAIRS, tmp_path / "store", files, encoder=tokenizer).train
    probe = [pair for pair in zip(sources, translations, strict=True) if all(pair)]
    monkeypatch.setattr(
        "jumok.recipes.certifying.translator.SHORTLISTS", [(1, 5, 1.0)]
    )  # as short as those of a large vocabulary
    monkeypatch.setattr("jumok.recipes.certifying.translator.MOST_BLEU_LOST_BY_SHORTLIST", 100.0)
    export_ctranslate2(tmp_path / "model", probe=probe, train=train)
    fast = load(tmp_path / "model", task="translator", fast=True)
    prefix = "우와! 쀍쀍 zebra"
    for number, (source, _) in enumerate(probe):  # of batches before, other shortlists
        fast.translate([source for source, _ in probe[: number + 1]])
        assert fast.translate(source, prefix=prefix, resolve_loops=False).startswith(prefix)


def test_int8_is_not_exported_without_examples(tmp_path: Path) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    with pytest.raises(ConfigError, match="int8 has to be compared on examples"):
        export_ctranslate2(tmp_path / "model", quantization="int8")
    assert not (tmp_path / "model" / DIRECTORY).exists()


def test_an_export_stays_until_the_next_one_is_there(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer)
    first, _ = export_ctranslate2(path)
    inode = first.stat().st_ino

    def fail(_: Path) -> dict[str, Any]:
        assert exported_model(load_bundle(path)) == first
        raise ParityError("differs")

    with pytest.raises(ParityError):
        export(load_bundle(path), "float32", fail)
    assert exported_model(load_bundle(path)) == first
    assert first.stat().st_ino == inode
    events: list[dict[str, str]] = []
    assert export_ctranslate2(path, on_event=events.append)[0] == first
    assert first.stat().st_ino != inode
    assert [event["event"] for event in events] == ["exporting", "certifying"]
    assert sorted(entry.name for entry in path.iterdir() if entry.is_dir()) == [DIRECTORY]


def test_a_crash_while_an_export_is_replaced_leaves_one(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer)
    first, _ = export_ctranslate2(path)
    first.rename(successor(first))  # between the two renames nothing has the name of the export
    assert exported_model(load_bundle(path)) == successor(first)
    assert load(path, "ctranslate2").translate("cat") == load(path, "torch").translate("cat")
    assert export_ctranslate2(path)[0] == first
    assert exported_model(load_bundle(path)) == first
    assert not successor(first).exists()


def test_a_model_that_was_replaced_meanwhile_is_not_exported(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer)
    old = load_bundle(path)

    def replace(_: Path) -> dict[str, Any]:
        weights = {name: 3 * weight for name, weight in old.weights().items()}
        save_bundle(path, config=old.config, weights=weights, encoder=("tokenizer", old.encoder_bytes), card={})
        return {}

    with pytest.raises(BundleError, match="was replaced during the export"):
        export(old, "float32", replace)
    assert exported_model(load_bundle(path)) is None


def test_a_model_that_translates_otherwise_is_not_exported(tmp_path: Path) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")

    def refuse(_directory: Path) -> dict[str, Any]:
        raise ParityError("not the same")

    with pytest.raises(ParityError):
        export(load_bundle(tmp_path / "model"), "float32", refuse)
    assert not (tmp_path / "model" / DIRECTORY).exists()
    with pytest.raises(ParityError, match="2 of 10 probes"):
        require_parity(Certificate(10, 7, 1, 0.0, {"source": [5]}))
    with pytest.raises(ParityError, match=r"differ from PyTorch's by up to 0\.1"):
        require_parity(Certificate(10, 10, 0, 0.1, None))


def test_a_text_longer_than_the_learned_positions_is_split(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre", positions="learned", max_length=40)
    export_ctranslate2(path)
    translator = load(path, "ctranslate2", task="translator")
    assert translator.engine.longest == 39
    assert translator.translate("The small cat sees the dog. " * 40, beam=1)


def test_models_that_cannot_be_exported_say_why(tmp_path: Path, tokenizer: Tokenizer) -> None:
    with pytest.raises(ConfigError, match="heads of width d_model / heads"):
        export_ctranslate2(save_model(tmp_path, tokenizer, d_k=4, d_v=6))


def test_auto_takes_the_export_and_forgets_it_when_the_weights_change(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre")
    assert isinstance(load(path, task="translator").engine, TorchTranslator)
    with pytest.raises(BundleError, match="is not exported to CTranslate2"):
        load(path, "ctranslate2", task="translator")
    directory, _ = export_ctranslate2(path)
    assert isinstance(load(path, task="translator").engine, Ctranslate2Translator)
    assert isinstance(load(path, "torch", task="translator").engine, TorchTranslator)
    kept = shutil.copytree(directory, tmp_path / "kept")
    save_model(tmp_path, tokenizer, norm="post")
    shutil.copytree(kept, directory)
    assert exported_model(load_bundle(path)) is None
    assert isinstance(load(path, task="translator").engine, TorchTranslator)


def test_a_damaged_export_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = save_model(tmp_path, tokenizer, norm="pre")
    directory, _ = export_ctranslate2(path)
    content = bytearray((directory / "model.bin").read_bytes())
    content[len(content) // 2] ^= 1
    (directory / "model.bin").write_bytes(content)
    with pytest.raises(BundleError, match=r"model\.bin: is damaged.*jumok export"):
        load(path, task="translator")


def test_translating_with_it_imports_no_torch(tmp_path: Path) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    export_ctranslate2(tmp_path / "model")
    program = (
        "import sys\n"
        "from jumok.cli.app import run\n"
        "code = run(['translate', '-m', sys.argv[1], '--beam=2'])\n"
        "sys.exit(9 if 'torch' in sys.modules else code)"
    )
    source = (FROZEN / "sources.txt").read_text(encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "model")],
        input=source,
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (FROZEN / "translations.txt").read_text(encoding="utf-8")


def test_pairs_beyond_the_exported_positions_are_scored_too(tokenizer: Tokenizer, tmp_path: Path) -> None:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    directory, _ = export_ctranslate2(tmp_path / "model")
    bundle = load_bundle(tmp_path / "model")
    original = TorchTranslator.from_bundle(bundle)
    exported = Ctranslate2Translator(directory, bundle, lambda: original, tokenizer=tokenizer)
    long = [5] * 2100
    ours, theirs = (engine.score([[5], long, [6]], [[5], long, [6]]) for engine in (exported, original))
    assert ours[1] == theirs[1]
    assert [value for row in (ours[0], ours[2]) for value in row] == pytest.approx([*theirs[0], *theirs[2]], abs=1e-4)


class ResultLater:
    """What CTranslate2 returns for an asynchronous call: the result is there at the fourth look."""

    looks = 0

    def done(self) -> bool:
        self.looks += 1
        return self.looks > 3

    def result(self) -> str:
        return "translated"


def test_only_the_main_thread_looks_again_and_again_for_it_alone_is_told_of_ctrl_c() -> None:
    here, elsewhere = ResultLater(), ResultLater()
    assert wait_for(here) == "translated"
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(wait_for, elsewhere).result() == "translated"
    assert (here.looks, elsewhere.looks) == (4, 0)
    quick = ResultLater()
    assert wait_for(quick, is_quick=True) == "translated"
    assert quick.looks == 0


@pytest.mark.parametrize(("tokens", "count", "expected"), [(20, 1, True), (20, 3, False), (200, 1, False)])
def test_ctrl_c_waits_for_one_short_sentence_only(
    engines: tuple[TorchTranslator, Ctranslate2Translator],
    monkeypatch: pytest.MonkeyPatch,
    tokens: int,
    count: int,
    expected: bool,
) -> None:
    asked = []

    def observed(future: Any, is_quick: bool) -> Any:
        asked.append(is_quick)
        return wait_for(future, is_quick)

    monkeypatch.setattr("jumok.engines.translator.ctranslate2.wait_for", observed)
    engines[1].generate([[300] * tokens] * count, SearchOptions(beam=5))
    assert set(asked) == {expected}
