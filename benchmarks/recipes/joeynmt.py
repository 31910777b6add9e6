"""JoeyNMT 2.3: `subword-nmt` for the pieces, then `python -m joeynmt train`."""

from __future__ import annotations

from typing import Any

from recipes import BEAM, SAME, Job, Recipe, Recipes, as_yaml

DOCUMENTED_MERGES = 4_000
# It saves when it validates, and decodes without a cache: more, or more often, would take minutes from the training.
VALIDATED, UPDATES_BETWEEN = 20, 300
DOCUMENTED = f"""[`configs/iwslt14_deen_bpe.yaml`](https://github.com/joeynmt/joeynmt/blob/main/configs/iwslt14_deen_bpe.yaml)
of joeynmt/joeynmt, its configuration for the smallest natural corpus (160,000 pairs): 6 layers, 256 wide, batches of
4,096 tokens, a rate of 0.0003. The 4,000 merges for both languages are those of `notebooks/joey_demo.ipynb`. Changed:
the rate stays the same, because the schedule `plateau`, which would lower it when validation stops improving, does not
start with this PyTorch; validation, which is when it saves, every 25 updates with {VALIDATED} sentences instead of
every 1,000, which would be once in hours, with all; on a CPU; longer sentences too."""
SAME_SIZES = f"""The same commands, with the sizes of `tiny`. It validates, which is when it saves, every
{UPDATES_BETWEEN} updates with {VALIDATED} sentences."""


def recipe(
    stack: dict[str, Any], merges: int, embedding_dropout: float, training: dict[str, Any], source: str
) -> Recipe:
    learn = f"cat train.en train.de | subword-nmt learn-bpe -s {merges} -o codes"
    count = "cat train.en train.de | subword-nmt apply-bpe -c codes | subword-nmt get-vocab"
    side = {
        "max_length": 100,
        "level": "bpe",
        "voc_file": "vocabulary.txt",
        "tokenizer_type": "subword-nmt",
        "tokenizer_cfg": {"num_merges": merges, "codes": "codes", "pretokenizer": "none"},
    }
    width = stack["hidden_size"]
    stack = {"type": "transformer", "layer_norm": "pre", "activation": "relu", **stack}
    stack["embeddings"] = {"embedding_dim": width, "scale": True, "dropout": embedding_dropout}
    config = {
        "name": "multi30k",
        "model_dir": "model",
        "use_cuda": False,
        "random_seed": 42,
        "data": {
            "train": "train",
            "dev": "valid",
            "sample_dev_subset": VALIDATED,
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {
            "beam_size": BEAM,
            "beam_alpha": 1.0,
            "batch_size": 1024,
            "batch_type": "token",
            "max_output_length": 100,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {"tokenize": "none"},
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "label_smoothing": SAME.smoothing,
            "batch_type": "token",
            "early_stopping_metric": "bleu",
            "epochs": 1000,
            "logging_freq": 25,  # `validation_freq` must be divisible by it
            "keep_best_ckpts": -1,
            "shuffle": True,
            **training,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }
    return Recipe(
        commands=[
            learn,
            f"{count} | cut -d ' ' -f 1 > vocabulary.txt",
            "python -m joeynmt train config.yaml --skip-test",
        ],
        translate=[
            "ln -sf $(basename {checkpoint}) model/best.ckpt",
            "python -m joeynmt translate config.yaml < test.en > output.de",
        ],
        checkpoints="model/[0-9]*.ckpt",
        source=source,
        files={"config.yaml": as_yaml(config)},
    )


def documented(_: Job) -> Recipe:
    stack = {"num_layers": 6, "num_heads": 4, "hidden_size": 256, "ff_size": 1024, "dropout": 0.3}
    training = {
        "adam_betas": [0.9, 0.999],
        "scheduling": "exponential",
        "decrease_factor": 1.0,
        "learning_rate": 0.0003,
        "batch_size": 4096,
        "validation_freq": 25,
    }
    return recipe(stack, DOCUMENTED_MERGES, 0.0, training, DOCUMENTED)


def same_sizes(job: Job) -> Recipe:
    size = job.sizes
    stack = {
        "num_layers": size["encoder_layers"],
        "num_heads": size["heads"],
        "hidden_size": size["d_model"],
        "ff_size": size["d_ff"],
        "dropout": SAME.dropout,
    }
    training = {
        "adam_betas": [0.9, 0.98],
        "scheduling": "warmupinversesquareroot",
        "learning_rate": SAME.rate,
        "learning_rate_warmup": SAME.warm_up,
        "clip_grad_norm": 1.0,
        "batch_size": SAME.batch_tokens,
        "validation_freq": UPDATES_BETWEEN,
    }
    return recipe(stack, SAME.vocabulary, SAME.dropout, training, SAME_SIZES)


RECIPES: Recipes = {"documented": documented, "sizes of tiny": same_sizes}
