"""Marian 1.12 by its Python package: `pymarian train`, which makes its pieces itself.

What its decoder writes on this CPU is wrong: of 200 pairs learned by heart (0.26 nats a piece, by its own scorer) it
translates with a BLEU of 6, in the trainer's validation too; CTranslate2 with the very same weights with 93. So
CTranslate2 translates with them, which marian_translate.py prepares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipes import BEAM, SAME, Job, Recipe, Recipes, as_yaml

DOCUMENTED = """[`transformer-intro`](https://github.com/marian-nmt/marian-examples/tree/master/transformer-intro) of
marian-nmt/marian-examples, for "your first machine translation model" (its corpus has 4.5 million pairs; for one of
this size Marian documents nothing): the preset `transformer-base`, written out by `--task transformer-base
--dump-config expand`. Changed: 4,000 pieces instead of 32,000, and batches of 2,048 words instead of
`mini-batch-fit`, which fits them to the memory of a GPU."""
SAME_SIZES = "The same command, with the sizes of `tiny`, pre-norm as in the preset `transformer-base-prenorm`."
DOCUMENTED_PIECES = 4_000
TRANSLATE = Path(__file__).with_name("marian_translate.py")
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}


def recipe(job: Job, settings: dict[str, Any], vocabulary: int, words: int, save_every: int, source: str) -> Recipe:
    config = {
        "type": "transformer",
        "tied-embeddings-all": True,
        "transformer-ffn-activation": "relu",
        "cost-type": "ce-mean-words",
        "max-length": 100,
        "maxi-batch": 1000,
        "mini-batch-words": words,
        "optimizer-params": [0.9, 0.98, 1e-09],
        "sync-sgd": True,
        "label-smoothing": SAME.smoothing,
        "valid-freq": "1000u",
        "valid-metrics": ["ce-mean-words"],
        "save-freq": f"{save_every}u",
        "disp-freq": "50u",
        **settings,
    }
    train = (
        f"pymarian train -c config.yaml --cpu-threads {job.threads} --seed 1111 --model model.npz "
        "--train-sets train.en train.de --valid-sets valid.en valid.de "
        f"--vocabs pieces.spm pieces.spm --dim-vocabs {vocabulary} {vocabulary}"
    )
    return Recipe(
        commands=[train],
        translate=[f"python {TRANSLATE} {{checkpoint}} {BEAM}"],
        checkpoints="model.iter*.npz",
        source=source,
        files={"config.yaml": as_yaml(config)},
        environment="ctranslate2",
    )


def documented(job: Job) -> Recipe:
    settings = {
        "dim-emb": 512,
        "enc-depth": 6,
        "dec-depth": 6,
        "transformer-heads": 8,
        "transformer-dim-ffn": 2048,
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-dropout": 0.1,
        "learn-rate": 0.0003,
        "lr-decay-inv-sqrt": [16000],
        "lr-warmup": "16000",
        "clip-norm": 0,
        "exponential-smoothing": 0.0001,
    }
    return recipe(job, settings, DOCUMENTED_PIECES, 2_048, 20, DOCUMENTED)


def same_sizes(job: Job) -> Recipe:
    size = job.sizes
    settings = {
        "dim-emb": size["d_model"],
        "enc-depth": size["encoder_layers"],
        "dec-depth": size["decoder_layers"],
        "transformer-heads": size["heads"],
        "transformer-dim-ffn": size["d_ff"],
        **PRE_NORM,
        "transformer-dropout": SAME.dropout,
        "learn-rate": SAME.rate,
        "lr-decay-inv-sqrt": [SAME.warm_up],
        "lr-warmup": f"{SAME.warm_up}",
        "clip-norm": 1,
    }
    return recipe(job, settings, SAME.vocabulary, SAME.batch_tokens, SAME.save_every, SAME_SIZES)


RECIPES: Recipes = {"documented": documented, "sizes of tiny": same_sizes}
