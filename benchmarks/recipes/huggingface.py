"""Hugging Face transformers: a program of one's own, huggingface_program.py, around Seq2SeqTrainer."""

from __future__ import annotations

from pathlib import Path

from recipes import SAME, Job, Recipe, Recipes, as_yaml

SOURCE = """Hugging Face documents no training of a translator from scratch
([`docs/source/en/tasks/translation.md`](https://github.com/huggingface/transformers/blob/main/docs/source/en/tasks/translation.md)
of huggingface/transformers fine-tunes T5). This is the smallest program with its `Seq2SeqTrainer` and the sizes of
`tiny`: `PegasusForConditionalGeneration`, which is a pre-norm Transformer with sinusoidal positions, and a BPE
vocabulary of `tokenizers`."""
PROGRAM = Path(__file__).with_name("huggingface_program.py")


def same_sizes(job: Job) -> Recipe:
    size = job.sizes
    config = {
        "vocabulary": SAME.vocabulary,
        "layers": size["encoder_layers"],
        "d_model": size["d_model"],
        "heads": size["heads"],
        "d_ff": size["d_ff"],
        "dropout": SAME.dropout,
        "smoothing": SAME.smoothing,
        "rate": SAME.rate,
        "warm_up": SAME.warm_up,
        "batch_tokens": SAME.batch_tokens,
        "save_every": SAME.save_every,
    }
    return Recipe(
        commands=["python program.py train"],
        translate=["python program.py translate $(dirname {checkpoint})"],
        checkpoints="run/checkpoint-*/trainer_state.json",  # written last
        source=SOURCE,
        files={"program.py": PROGRAM.read_text(encoding="utf-8"), "settings.yaml": as_yaml(config)},
    )


RECIPES: Recipes = {"sizes of tiny": same_sizes}
