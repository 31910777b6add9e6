"""Hugging Face transformers: Seq2SeqTrainer and `generate`, both as its documentation shows.

MarianMTModel is post-norm. A pre-norm model of the same sizes is PegasusForConditionalGeneration, which is the same
code otherwise: fixed sinusoidal positions, tied embeddings, scaled by √d_model.
"""

from __future__ import annotations

from typing import Any

import torch
from contender import (
    Clock,
    Job,
    Translate,
    batches_of,
    longest_first,
    pieces_of,
    read_lines,
    renamed,
    run,
    split_weights,
)
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD, BOS, EOS = 0, 2, 3
SENTENCES = 64  # translated at a time
NAMES = {
    "encoder.": "model.encoder.",
    "decoder.": "model.decoder.",
    ".self.norm": ".self_attn_layer_norm",
    ".cross.norm": ".encoder_attn_layer_norm",
    ".ff.norm": ".final_layer_norm",
    "coder.norm": "coder.layer_norm",
    ".self.": ".self_attn.",
    ".cross.": ".encoder_attn.",
    ".query.": ".q_proj.",
    ".key.": ".k_proj.",
    ".value.": ".v_proj.",
    ".output.": ".out_proj.",
    ".ff.in.": ".fc1.",
    ".ff.out.": ".fc2.",
}


def model_class(job: Job) -> tuple[Any, Any]:
    import transformers

    if job["model"]["norm"] == "pre":
        return transformers.PegasusForConditionalGeneration, transformers.PegasusConfig
    return transformers.MarianMTModel, transformers.MarianConfig


def make_model(job: Job) -> Any:
    size = job["model"]
    cls, config_class = model_class(job)
    sizes = {}
    for stack in ("encoder", "decoder"):
        sizes[f"{stack}_layers"] = size[f"{stack}_layers"]
        sizes[f"{stack}_attention_heads"] = size["heads"]
        sizes[f"{stack}_ffn_dim"] = size["d_ff"]
    config = config_class(
        vocab_size=size["vocabulary"],
        d_model=size["d_model"],
        **sizes,
        activation_function=size["activation"],
        dropout=size["dropout"],
        attention_dropout=size["attention_dropout"],
        max_position_embeddings=1024,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return cls(config)


def train(job: Job, clock: Clock) -> None:
    import transformers

    class Trainer(transformers.Seq2SeqTrainer):
        def training_step(self, model: Any, inputs: Any, *rest: Any) -> Any:
            clock.step(int((inputs["labels"] != -100).sum()))
            return super().training_step(model, inputs, *rest)

        def get_train_dataloader(self) -> DataLoader[Any]:
            return DataLoader(self.train_dataset, batch_sampler=batches_of(job), collate_fn=self.data_collator)

    arguments = transformers.Seq2SeqTrainingArguments(
        output_dir=f"{job['work']}/train",
        use_cpu=job.get("device", "cpu") == "cpu",
        bf16=job.get("precision") == "bfloat16",
        fp16=job.get("precision") == "float16",
        label_smoothing_factor=0.1,
        learning_rate=1e-4,
        optim="adamw_torch_fused",
        adam_beta2=0.98,
        max_grad_norm=1.0,
        max_steps=10_000,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        remove_unused_columns=False,
        disable_tqdm=True,
    )
    Trainer(make_model(job), arguments, train_dataset=read_pairs(job), data_collator=collate).train()


def read_pairs(job: Job) -> list[dict[str, list[int]]]:
    pieces = pieces_of(job)
    columns = []
    for side in ("src", "tgt"):
        lines = read_lines(f"{job['text']}/train.{side}")
        columns.append([[pieces.piece_to_id(piece) for piece in line.split(" ")] + [EOS] for line in lines])
    return [{"input_ids": source, "labels": target} for source, target in zip(*columns, strict=True)]


def collate(examples: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    source = pad([example["input_ids"] for example in examples], PAD)
    labels = pad([example["labels"] for example in examples], -100)
    decoder = labels.roll(1, 1).masked_fill(labels.roll(1, 1) == -100, PAD)
    decoder[:, 0] = BOS  # given beside the labels, because the trainer's own label smoothing takes these away
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": decoder,
        "labels": labels,
    }


def pad(rows: list[list[int]], value: int) -> torch.Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def convert(job: Job) -> None:
    weights = split_weights(job)
    embedding = weights.pop("embedding")
    renamed_weights = renamed(weights, NAMES)
    state = {}
    for name, value in renamed_weights.items():
        stack, dot, rest = name.partition("coder.")
        state[f"{stack}{dot}layers.{rest}" if rest[0].isdigit() else name] = torch.from_numpy(value)
    for name in ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"):
        state[name] = torch.from_numpy(embedding)
    state["lm_head.weight"] = torch.from_numpy(embedding)
    state["final_logits_bias"] = never_written(len(embedding))
    model = make_model(job)
    for stack in ("encoder", "decoder"):  # Jumok's table: sines and cosines in turns, as in the paper
        state[f"model.{stack}.embed_positions.weight"] = positions(1024, job["model"]["d_model"])
    model.load_state_dict(state)
    model.save_pretrained(f"{job['work']}/model")


def never_written(vocabulary: int) -> torch.Tensor:
    """Nobody may write padding, an unknown piece or a beginning."""
    bias = torch.zeros(1, vocabulary)
    bias[:, :EOS] = -1e9
    return bias


def positions(count: int, width: int) -> torch.Tensor:
    angle = torch.arange(count, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack((angle.sin(), angle.cos()), -1).reshape(count, width).float()


def load(job: Job, beam: int) -> Translate:
    pieces = pieces_of(job)
    model = model_class(job)[0].from_pretrained(f"{job['work']}/model").eval()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6  # Jumok's

    def translate(lines: list[str]) -> list[str]:
        sentences = pieces.encode(lines)
        outputs = [""] * len(lines)
        for places in longest_first(sentences, SENTENCES):
            source = pad([[*sentences[place], EOS] for place in places], PAD)
            with torch.inference_mode():
                found = model.generate(
                    input_ids=source,
                    attention_mask=(source != PAD).long(),
                    num_beams=beam,
                    do_sample=False,
                    early_stopping=False,
                    max_new_tokens=2 * source.shape[1] + 10,
                )
            for place, row in zip(places, found.tolist(), strict=True):
                outputs[place] = pieces.decode([token for token in row if token > EOS])
        return outputs

    return translate


if __name__ == "__main__":
    run(train=train, convert=convert, load=load)
