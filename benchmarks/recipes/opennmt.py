"""OpenNMT-py 3.5: `onmt_build_vocab`, `onmt_train`, `onmt_translate`."""

from __future__ import annotations

from typing import Any

from recipes import BEAM, SAME, Job, Recipe, Recipes, as_yaml

DOCUMENTED = """`docs/source/extended.md` of early versions of OpenNMT/OpenNMT-py is a recipe for this very corpus:
words, with the default model and optimizer, which are the same in version 3.5 (LSTM, two layers of 500, stochastic
gradient descent with a rate of 1, 64 sentences a batch). Files and commands are those of
[`docs/source/quickstart.md`](https://github.com/OpenNMT/OpenNMT-py/blob/master/docs/source/quickstart.md) of version 3.
Changed: it saves every 200 updates and validates every 1,000 (both stand at 500 there), and the older page's
`-replace_unk` is left out, with which version 3.5 fails."""
SAME_SIZES = """A Transformer with the sizes of `tiny`. Options that its
[FAQ](https://github.com/OpenNMT/OpenNMT-py/blob/master/docs/source/FAQ.md) calls necessary for one are taken from there
(`position_encoding`, `param_init_glorot`, `decay_method: noam`, `normalization: tokens`); pieces by SentencePiece."""
SPM = (
    "python -c 'import sentencepiece; sentencepiece.SentencePieceTrainer.train("
    f'input="train.en,train.de", model_prefix="pieces", vocab_size={SAME.vocabulary}, character_coverage=1.0)\''
)


def recipe(settings: dict[str, Any], before: list[str], translate: str, save_every: int, source: str) -> Recipe:
    config = {
        "save_data": "run",
        "src_vocab": "run/vocabulary.src",
        "tgt_vocab": "run/vocabulary.tgt",
        "data": {
            "corpus": {"path_src": "train.en", "path_tgt": "train.de"},
            "valid": {"path_src": "valid.en", "path_tgt": "valid.de"},
        },
        "save_model": "run/model",
        "save_checkpoint_steps": save_every,
        "valid_steps": 1000,
        "train_steps": 1_000_000,
        **settings,
    }
    # A line of train.en has two spaces in a row, an empty word between them, and the vocabulary cannot be read again.
    commands = ["sed -i 's/  */ /g' train.en", *before]
    commands += ["onmt_build_vocab -config config.yaml -n_sample -1", "onmt_train -config config.yaml"]
    files = {"config.yaml": as_yaml(config)}
    return Recipe(commands, [translate], "run/model_step_*.pt", source, files)


def documented(_: Job) -> Recipe:
    translate = f"onmt_translate -model {{checkpoint}} -src test.en -output output.de -beam_size {BEAM}"
    return recipe({}, [], translate, 200, DOCUMENTED)


def same_sizes(job: Job) -> Recipe:
    size = job.sizes
    noam = (
        SAME.rate * (size["d_model"] * SAME.warm_up) ** 0.5
    )  # its rates are multiplied by 1/√(d_model · warm-up) at the peak
    settings = {
        "share_vocab": True,
        "transforms": ["sentencepiece"],
        "src_subword_model": "pieces.model",
        "tgt_subword_model": "pieces.model",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": size["encoder_layers"],
        "dec_layers": size["decoder_layers"],
        "hidden_size": size["d_model"],
        "word_vec_size": size["d_model"],
        "heads": size["heads"],
        "transformer_ff": size["d_ff"],
        "add_ffnbias": True,
        "dropout": [SAME.dropout],
        "attention_dropout": [SAME.dropout],
        "position_encoding": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "param_init": 0,
        "param_init_glorot": True,
        "optim": "adam",
        "adam_beta2": 0.98,
        "decay_method": "noam",
        "learning_rate": round(noam, 4),
        "warmup_steps": SAME.warm_up,
        "max_grad_norm": 1.0,
        "label_smoothing": SAME.smoothing,
        "normalization": "tokens",
        "batch_type": "tokens",
        "batch_size": SAME.batch_tokens,
        "bucket_size": 32768,
    }
    translate = (
        f"onmt_translate -model {{checkpoint}} -src test.en -output output.de -beam_size {BEAM} -length_penalty avg "
        "-transforms sentencepiece -src_subword_model pieces.model -tgt_subword_model pieces.model"
    )
    return recipe(settings, [SPM], translate, SAME.save_every, SAME_SIZES)


RECIPES: Recipes = {"documented": documented, "sizes of tiny": same_sizes}
