"""The trace of a language model: one forward pass over a text, and over what the model continues it with."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jumok.data.examples import Rejections
from jumok.data.reading.options import reading_options
from jumok.data.reading.passages import read_passages
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.engines.options import GenerationOptions
from jumok.engines.torch_models import padded
from jumok.errors import ConfigError, did_you_mean
from jumok.lens.importance import Quality
from jumok.lens.traces import Trace
from jumok.lens.tracing import Recording, facts, require_tokens, torch_engine
from jumok.tokenizer import BOS, EOS


def trace(model: Any, text: str, *, continue_by: int = 0, **options: Any) -> Trace:
    """The trace of a text, which the model first continues by so many tokens. `options` are `GenerationOptions`.
    Row t holds what the model expects after token t; `surprise` is −log₂ of the probability of the token that came."""
    engine, tokenizer = torch_engine(model), model.tokenizer
    [ids] = tokenizer.encode([text]) if text else [[]]
    if continue_by:
        known = GenerationOptions.__dataclass_fields__
        for name in options:
            if name not in known:
                raise ConfigError(f'Unknown option "{name}".{did_you_mean(name, list(known))}')
        ids = [*ids, *engine.generate(ids, GenerationOptions(max_tokens=continue_by, **options))]
    require_tokens(ids, text)
    rows = padded([[BOS, *ids]], engine.device)
    recording = Recording(engine)
    states = recording.run(lambda: engine.model.states(rows), len(ids))
    recording.add_logits(states)
    with engine.evaluating(len(ids)):
        log_probs = engine.forced_log_probs(states, padded([[BOS, *ids, EOS]], engine.device))
    recording.tensors["surprise"] = -(log_probs[0].cpu().numpy() / np.log(2)).astype(np.float32)
    sides = {
        "decoder": tuple(tokenizer.pieces([BOS, *ids])),
        "chosen": tuple(tokenizer.pieces([*ids, EOS])),
    }
    [written] = tokenizer.decode([ids])
    return Trace("language_model", text, written, recording.tensors, sides, None, facts(model, engine, [*ids, EOS]))


def measure(model: Any, examples: Sequence[tuple[str, str]], _score: bool) -> Callable[[], Quality]:
    """Log-probability of the texts. There is no score besides."""
    engine = torch_engine(model)
    texts = model.tokenizer.encode([text for text, _ in examples])

    def run() -> Quality:
        found = engine.score(texts)
        return Quality(sum(map(sum, found)) / sum(map(len, found)), None, tuple(found[0]))

    return run


def read_examples(_model: Any, path: Path, rejections: Rejections, **reading: Any) -> Iterator[tuple[str, str]]:
    """The passages of a file, which have no targets."""
    options = reading_options(count=1, **reading)
    refuse_unused_options(options, [path], unnamed="text")
    return ((example.inputs[0], "") for example in read_passages([path], rejections, options=options))
