"""A translator with Hugging Face's Seq2SeqTrainer: `program.py train`, then `program.py translate CHECKPOINT`."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorForSeq2Seq,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
PAD, BOS, EOS = 0, 2, 3


def read(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def train_tokenizer(size: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train(["train.en", "train.de"], trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", EOS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def make_model(settings: dict[str, Any]) -> PegasusForConditionalGeneration:
    sizes = {f"{stack}_layers": settings["layers"] for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_attention_heads": settings["heads"] for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_ffn_dim": settings["d_ff"] for stack in ("encoder", "decoder")}
    config = PegasusConfig(
        vocab_size=settings["vocabulary"],
        d_model=settings["d_model"],
        dropout=settings["dropout"],
        attention_dropout=settings["dropout"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        **sizes,
    )
    return PegasusForConditionalGeneration(config)


class TokenBatches:
    """Places of examples in batches of about so many target tokens, of similar lengths, in a new order each epoch."""

    def __init__(self, lengths: list[int], tokens: int) -> None:
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches: list[list[int]] = [[]]
        for place in order:
            if (len(self.batches[-1]) + 1) * lengths[place] > tokens:
                self.batches.append([])
            self.batches[-1].append(place)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        yield from random.sample(self.batches, len(self.batches))


class Trainer(Seq2SeqTrainer):
    batches: TokenBatches

    def get_train_dataloader(self) -> DataLoader:
        return DataLoader(self.train_dataset, batch_sampler=self.batches, collate_fn=self.data_collator)


def train(settings: dict[str, Any]) -> None:
    tokenizer = train_tokenizer(settings["vocabulary"])
    tokenizer.save_pretrained("tokenizer")
    columns = [tokenizer(read(f"train.{language}"))["input_ids"] for language in ("en", "de")]
    pairs = [{"input_ids": source, "labels": target} for source, target in zip(*columns, strict=True)]
    model = make_model(settings)
    arguments = Seq2SeqTrainingArguments(
        output_dir="run",
        use_cpu=True,
        label_smoothing_factor=settings["smoothing"],
        learning_rate=settings["rate"],
        warmup_steps=settings["warm_up"],
        lr_scheduler_type="inverse_sqrt",
        optim="adamw_torch_fused",
        adam_beta2=0.98,
        max_grad_norm=1.0,
        max_steps=1_000_000,
        save_strategy="steps",
        save_steps=settings["save_every"],
        report_to="none",
    )
    trainer = Trainer(model, arguments, train_dataset=pairs, data_collator=DataCollatorForSeq2Seq(tokenizer, model))
    trainer.batches = TokenBatches([len(pair["labels"]) for pair in pairs], settings["batch_tokens"])
    trainer.train()


def translate(checkpoint: str) -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained("tokenizer")
    model = PegasusForConditionalGeneration.from_pretrained(checkpoint).eval()
    lines = read("test.en")
    order = sorted(range(len(lines)), key=lambda place: len(lines[place]))
    outputs = [""] * len(lines)
    for start in range(0, len(lines), 64):
        places = order[start : start + 64]
        source = tokenizer([lines[place] for place in places], padding=True, return_tensors="pt")
        source.pop("token_type_ids", None)
        found = model.generate(**source, num_beams=5, max_new_tokens=100)
        for place, text in zip(places, tokenizer.batch_decode(found, skip_special_tokens=True), strict=True):
            outputs[place] = text
    Path("output.de").write_text("".join(f"{line}\n" for line in outputs), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(yaml.safe_load(Path("settings.yaml").read_text(encoding="utf-8")))
    else:
        translate(sys.argv[2])
