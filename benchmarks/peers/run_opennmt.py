"""OpenNMT-py: `onmt_train` and its inference engine. Its Transformer is always pre-norm.

It is given pieces, so that it need not cut words itself. Its source has no `</s>` of its own, so the text has one where
Jumok's weights are used. The environment has a newer PyTorch than it asks for, which is to its advantage.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints are older than this default of PyTorch's
import torch
from contender import (
    Clock,
    Job,
    Translate,
    batches_of,
    longest_first,
    read_lines,
    renamed,
    run,
    split_weights,
    text_to_text,
    write_pieces,
)

SENTENCES = 64  # translated at a time
PADDING = {"<pad>": "<blank>"}  # the same under another name
NAMES = {
    "encoder.": "encoder.transformer.",
    "decoder.": "decoder.transformer_layers.",
    "transformer.norm": "layer_norm",
    "transformer_layers.norm": "layer_norm",
    ".ff.norm": ".feed_forward.layer_norm",
    ".ff.in": ".feed_forward.w_1",
    ".ff.out": ".feed_forward.w_2",
    ".query": ".linear_query",
    ".key": ".linear_keys",
    ".value": ".linear_values",
    ".output": ".final_linear",
    ".cross.norm": ".layer_norm_2",
    ".cross.": ".context_attn.",
}


def configuration(job: Job, directory: Path, text: Path) -> dict[str, Any]:
    size = job["model"]
    vocabulary = directory / "vocabulary.onmt"
    names = [PADDING.get(piece, piece) for piece in read_lines(text / "vocabulary.txt")]
    vocabulary.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return {
        "data": {
            "corpus": {"path_src": str(text / "batches.src"), "path_tgt": str(text / "batches.tgt")},
            "valid": {"path_src": str(text / "valid.src"), "path_tgt": str(text / "valid.tgt")},
        },
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "share_vocab": True,
        "vocab_size_multiple": 1,
        "save_model": str(directory / "model"),
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": size["encoder_layers"],
        "dec_layers": size["decoder_layers"],
        "hidden_size": size["d_model"],
        "word_vec_size": size["d_model"],
        "heads": size["heads"],
        "transformer_ff": size["d_ff"],
        "add_ffnbias": True,
        "dropout": [size["dropout"]],
        "attention_dropout": [size["attention_dropout"]],
        "position_encoding": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "param_init_method": "xavier_uniform",
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": 1e-4,
        "max_grad_norm": 1.0,
        "label_smoothing": 0.1,
        "normalization": "tokens",
        "batch_type": "tokens",
        "batch_size": job.get("batch_tokens", 64),
        "bucket_size": job.get("batch_lines", 64),
        "num_workers": 1,
        "train_steps": job.get("steps", 1) + job.get("warm_up", 0) + 1,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "seed": 1,
        **({"world_size": 1, "gpu_ranks": [0]} if job.get("device", "cpu").startswith("cuda") else {}),
        **({"model_dtype": "fp16"} if job.get("precision") == "float16" else {}),
    }


def run_training(job: Job, directory: Path, text: Path) -> None:
    from onmt.bin.train import main

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    path = directory / "config.yaml"
    path.write_text(json.dumps(configuration(job, directory, text)), encoding="utf-8")  # JSON is YAML
    sys.argv = ["onmt_train", "-config", str(path)]
    main()


def use_batches(job: Job) -> None:
    """Cuts the training text, which has the lines of these batches one after the other, just there."""
    from onmt.inputters import dynamic_iterator

    sizes = [len(batch) for batch in batches_of(job)]

    def cut(_: Any, examples: list[Any], *__: Any, **___: Any) -> Any:
        rest = iter(examples)
        yield from (list(islice(rest, size)) for size in sizes)

    loader = dynamic_iterator.DataLoader  # its worker is to know what is replaced here, so it is forked
    dynamic_iterator.DataLoader = lambda *given, **options: loader(
        *given, **options | {"multiprocessing_context": "fork"}
    )
    dynamic_iterator.text_sort_key = lambda example: example["cid_line_number"]
    dynamic_iterator.RandomShuffler.__call__ = lambda _, batches: batches
    dynamic_iterator.DynamicDatasetIter.batch_iter = cut


def train(job: Job, clock: Clock) -> None:
    from onmt.trainer import Trainer

    use_batches(job)
    accumulate = Trainer._gradient_accumulation

    def timed(self: Any, batches: list[Any], *rest: Any) -> Any:
        padding = self.train_loss.padding_idx
        clock.step(sum(int(batch["tgt"][:, 1:, 0].ne(padding).sum()) for batch in batches))
        return accumulate(self, batches, *rest)

    Trainer._gradient_accumulation = timed
    run_training(job, Path(job["work"], "train"), Path(job["text"]))


def convert(job: Job) -> None:
    """Trains a model of these sizes for a moment and replaces its weights."""
    text, scratch, directory = (Path(job["work"], name) for name in ("text", "scratch", "model"))
    if job["model"]["norm"] != "pre":
        raise SystemExit("OpenNMT-py has no post-norm Transformer, and the model to translate with is one.")
    write_pieces(job, text, 200)
    run_training(job, scratch, text)
    [saved] = scratch.glob("model_step_*.pt")
    checkpoint = torch.load(saved, weights_only=False)
    state = checkpoint["model"]
    weights = split_weights(job)
    rows = torch.from_numpy(weights.pop("embedding"))
    for stack in ("encoder", "decoder"):
        state[f"{stack}.embeddings.make_embedding.emb_luts.0.weight"] = rows
    for name, value in renamed(weights, NAMES).items():
        norm = ".layer_norm" if name.startswith("encoder") else ".layer_norm_1"
        name = name.replace(".self.norm", norm).replace(".self.", ".self_attn.")
        if name not in state and not name.endswith(".bias"):
            raise SystemExit(f"OpenNMT-py has no weight {name}.")
        if name in state:
            state[name] = torch.from_numpy(value)
    bias = torch.zeros(len(rows))
    bias[:3] = -1e9  # nobody may write padding, an unknown piece or a beginning
    checkpoint["generator"] = {"weight": rows, "bias": bias}
    checkpoint["optim"] = None
    directory.mkdir(exist_ok=True)
    torch.save(checkpoint, directory / "model.pt")


def load(job: Job, beam: int) -> Translate:
    from onmt.bin.translate import _get_parser
    from onmt.inference_engine import InferenceEnginePY
    from onmt.utils.parse import ArgumentParser

    options = _get_parser().parse_args(
        [
            *["-model", f"{job['work']}/model/model.pt", "-src", "none", "-gpu", "-1", "-beam_size", str(beam)],
            *["-batch_size", str(SENTENCES), "-length_penalty", "avg", "-max_length", "250"],
            *["-output", f"{job['work']}/outputs.txt"],  # it opens the file even if it is given lists
        ]
    )
    ArgumentParser.validate_translate_opts(options)
    ArgumentParser._get_all_transform_translate(options)
    ArgumentParser._validate_transforms_opts(options)
    ArgumentParser.validate_translate_opts_dynamic(options)
    engine = InferenceEnginePY(options)

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        order = [place for batch in longest_first(sentences, SENTENCES) for place in batch]
        _, found = engine.infer_list([" ".join([*sentences[place], "</s>"]) for place in order])
        outputs: list[list[str]] = [[] for _ in sentences]
        for place, best in zip(order, found, strict=True):
            outputs[place] = best[0].split(" ")
        return outputs

    return text_to_text(job, translate)


if __name__ == "__main__":
    run(train=train, convert=convert, load=load)
