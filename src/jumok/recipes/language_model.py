"""Text in, a language model out."""

import math
from collections.abc import Callable, Sequence
from typing import Unpack

import torch
from torch import Tensor

from jumok.data.batch import TextBatch
from jumok.data.epochs import TextEpochs
from jumok.data.kinds import PASSAGES, reading_with
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.options import GenerationOptions
from jumok.model.devices import device_of, to_device
from jumok.model.language_model import LanguageModel
from jumok.recipes.recipe import BY_MUON, PathLike, Recipe, few_wide_layers
from jumok.recipes.training import TrainingResult, TrainRequest, train
from jumok.training.auto import Choice
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

SAMPLE_TOKENS = 40  # shown after each validation
SAMPLE_PROMPT = 0.3  # of the passage that is continued


def train_language_model(
    *texts: PathLike,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    columns: Columns | str | int | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    **request: Unpack[TrainRequest],
) -> TrainingResult:
    """Train a language model on text files, or on a column of tables, in the run directory `out`, or resume it.

    How files are read is found out, and told by the event "file"; these arguments choose instead: `columns`, that of
    the texts in a table, by name or number (from 1); `separator` of a CSV file; `sheet` of a workbook, by name or
    number; `encoding` of text. Further arguments: those of `TrainRequest`.
    """
    reading = {"columns": columns, "separator": separator, "sheet": sheet, "encoding": encoding}
    return train("language_model", *texts, out=out, valid=valid, **reading, **request)


class LanguageModelRecipe(Recipe):
    """Predicts the next token of passages; the best model is the one with the fewest bits per byte."""

    task, epochs_type = "language_model", TextEpochs
    validation_cost, export_cost = 0.5, 4.0
    predicted = "text"

    def __init__(
        self,
        data: Sequence[PathLike],
        valid: Sequence[PathLike] | None = None,
        *,
        columns: Columns | str | int | None = None,
        separator: str | None = None,
        sheet: str | int | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(data, valid)
        options = reading_options(columns=columns, count=1, separator=separator, sheet=sheet, encoding=encoding)
        refuse_unused_options(options, self.data, self.valid, unnamed="text")
        self.kind = reading_with(PASSAGES, options)

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """No label smoothing: it would spread probability over tokens that hardly ever come."""
        return (Choice("loss.smoothing", 0.0, "the probabilities themselves are what counts"),)

    def choices_for(self, chosen: Settings) -> Sequence[Choice]:
        """For `tiny`, what is better after the same minutes: see "Optimizer", "Shape" and "Positions" in
        benchmarks/language_model.md."""
        if chosen.preset != "tiny":
            return ()
        sizes = few_wide_layers(decoder_layers=3, d_model=192, d_ff=384)
        return BY_MUON, *sizes, *self.choices_of_rotary(chosen, sizes)

    def loss(self, model: LanguageModel, settings: Settings) -> Callable[[TextBatch], Tensor]:
        """Teacher forcing: each token given the true ones before it."""
        sampler, smoothing = self.candidate_sampler(settings), settings.loss.smoothing

        def loss(batch: TextBatch) -> Tensor:
            text = to_device(torch.from_numpy(batch.target_in), device_of(model))
            states = model.states(text).flatten(0, 1)
            targets = torch.from_numpy(batch.target_out).flatten()
            drawn = sampler if model.training else None
            return smoothed_cross_entropy(states, model.embed.tokens.weight, targets, smoothing, sampler=drawn)

        return loss

    def validate(self, model: LanguageModel, count: int) -> Validation:
        """Loss, perplexity and bits per byte on validation passages, and a continuation to look at."""
        texts = [example.inputs[0] for example in self.validation_examples(count)]
        encoded = self.corpus.tokenizer.encode(texts)
        log_probs = [value for row in TorchLanguageModel(model).score(encoded) for value in row]
        loss = -math.fsum(log_probs) / len(log_probs)
        size = sum(len(text.encode()) + 1 for text in texts)  # and a line end for each </s>
        bits = -math.fsum(log_probs) / math.log(2) / size
        metrics = {
            "loss": loss,
            "perplexity": math.exp(min(loss, 700.0)),
            "bits_per_byte": bits,
            "samples": [self._sample(model, encoded[0])],
        }
        return Validation(-bits, metrics)

    def _sample(self, model: LanguageModel, passage: Sequence[int]) -> dict[str, str]:
        end = max(1, int(SAMPLE_PROMPT * len(passage)))
        prompt, reference = passage[max(0, end - SAMPLE_TOKENS) : end], passage[end : end + SAMPLE_TOKENS]
        options = GenerationOptions(max_tokens=SAMPLE_TOKENS, temperature=0.8, top_p=0.9)
        written = TorchLanguageModel(model).generate(prompt, options)
        texts = self.corpus.tokenizer.decode([prompt, reference, written])
        return dict(zip(("source", "reference", "output"), texts, strict=True))
