"""JoeyNMT: its TrainManager as `joeynmt train` runs it, and the search of `joeynmt translate`.

It is given pieces, so that it need not cut words itself, and sentences sorted by length when it translates, because it
does not sort them.
"""

from __future__ import annotations

import os
import shutil
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
    renamed,
    run,
    split_weights,
    text_to_text,
    write_pieces,
)

SENTENCES = 64  # translated at a time
NAMES = {
    "encoder.": "encoder.layers.",
    "decoder.": "decoder.layers.",
    "layers.norm": "layer_norm",
    ".ff.norm": ".feed_forward.layer_norm",
    ".ff.in": ".feed_forward.pwff_layer.0",
    ".ff.out": ".feed_forward.pwff_layer.3",
    ".query": ".q_layer",
    ".key": ".k_layer",
    ".value": ".v_layer",
    ".output": ".output_layer",
    ".cross.norm": ".dec_layer_norm",
    ".cross.": ".src_trg_att.",
}


def configuration(job: Job, directory: Path, text: Path, beam: int = 1) -> dict[str, Any]:
    size = job["model"]
    stack = {
        "type": "transformer",
        "num_heads": size["heads"],
        "embeddings": {"embedding_dim": size["d_model"], "scale": True, "dropout": size["dropout"]},
        "hidden_size": size["d_model"],
        "ff_size": size["d_ff"],
        "dropout": size["dropout"],
        "layer_norm": size["norm"],
    }
    side = {"voc_file": str(text / "vocabulary.txt"), "level": "word", "lowercase": False, "max_length": 1024}
    return {
        "name": "peer",
        "model_dir": str(directory),
        "use_cuda": job.get("device", "cpu").startswith("cuda"),
        "fp16": job.get("precision") == "float16",
        "random_seed": 1,
        "data": {
            "train": str(text / "train"),
            "dev": str(text / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        },
        "testing": {
            "beam_size": beam,
            "beam_alpha": 1.0,
            "batch_size": SENTENCES,
            "batch_type": "sentence",
            "generate_unk": False,
        },
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 1e-4,
            "scheduling": "warmupinversesquareroot",  # without a schedule it refuses to start
            "learning_rate_warmup": 4000,
            "normalization": "tokens",
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "batch_size": job.get("batch_tokens", 1),
            "batch_type": "token",
            "epochs": 1000,
            "logging_freq": 100,
            "validation_freq": 1_000_000,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": {**stack, "num_layers": size["encoder_layers"]},
            "decoder": {**stack, "num_layers": size["decoder_layers"]},
        },
    }


def train(job: Job, clock: Clock) -> None:
    from joeynmt import datasets, training

    class Batches(datasets.TokenBatchSampler):
        def __iter__(self) -> Any:
            return iter(batches_of(job))

    class TrainManager(training.TrainManager):
        def _train_step(self, batch: Any) -> Any:
            clock.step(int(batch.ntokens))
            return super()._train_step(batch)

    directory = Path(job["work"], "train")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    training.TrainManager, datasets.TokenBatchSampler = TrainManager, Batches
    training.train(rank=0, world_size=None, cfg=configuration(job, directory, Path(job["text"])), skip_test=True)


def convert(job: Job) -> None:
    from joeynmt.config import parse_global_args
    from joeynmt.data import load_data
    from joeynmt.model import build_model

    directory = Path(job["work"], "model")
    write_pieces(job, directory, 200)
    arguments = parse_global_args(configuration(job, directory, directory), mode="train")
    source, target, *_ = load_data(cfg=arguments.data, datasets=["train"])
    model = build_model(arguments.model, src_vocab=source, trg_vocab=target)
    weights = split_weights(job)
    rows = weights.pop("embedding")
    rows[[0, 1]] = rows[[1, 0]]  # here <unk> is 0 and <pad> 1
    state = model.state_dict()
    for name in ("src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight"):
        state[name] = torch.from_numpy(rows)
    for name, value in renamed(weights, NAMES).items():
        ours = (".self.norm", ".layer_norm") if name.startswith("encoder") else (".self.norm", ".x_layer_norm")
        attention = ".src_src_att." if name.startswith("encoder") else ".trg_trg_att."
        name = name.replace(*ours).replace(".self.", attention)
        if name not in state:
            raise SystemExit(f"JoeyNMT has no weight {name}.")
        state[name] = torch.from_numpy(value)
    model.load_state_dict(state)
    torch.save({"model_state": model.state_dict()}, directory / "best.ckpt")


def load(job: Job, beam: int) -> Translate:
    from joeynmt.config import parse_global_args
    from joeynmt.prediction import predict, prepare

    directory = Path(job["work"], "model")
    arguments = parse_global_args(configuration(job, directory, directory, beam), mode="translate")
    model, _, _, stream = prepare(arguments, rank=0, mode="translate")

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        order = [place for batch in longest_first(sentences, SENTENCES) for place in batch]
        stream.reset_cache()
        for place in order:
            stream.set_item(" ".join(sentences[place]))
        found = predict(
            model=model,
            data=stream,
            compute_loss=False,
            device=arguments.device,
            n_gpu=int(job.get("device", "cpu").startswith("cuda")),
            normalization="none",
            args=arguments.test,
            autocast=arguments.autocast,
        )[2]
        outputs: list[list[str]] = [[] for _ in sentences]
        for place, output in zip(order, found, strict=True):
            outputs[place] = output.split(" ")
        return outputs

    return text_to_text(job, translate)


if __name__ == "__main__":
    run(train=train, convert=convert, load=load)
