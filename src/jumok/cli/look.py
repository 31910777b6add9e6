"""jumok look: the explorer, in which one sees a model think."""

import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import (
    JSON,
    LANGUAGES,
    MODEL,
    PATH,
    hardware_options,
    print_json,
    reading_flags,
    say,
    say_layouts,
)
from jumok.cli.several_values import SeveralValuesCommand, columns_of_a_task
from jumok.errors import ConfigError, InputError, counted
from jumok.tasks import task_named

PORT = 8420
EXAMPLES = 100  # of a file, at most, for ranking heads
SAMPLES = 6
MOST_PICTURES = 24  # of a directory, evenly spread
ANIMAL = "The animal didn't cross the street because it was too tired."  # a sentence of the built-in corpus


@click.command(
    cls=SeveralValuesCommand,
    several={"--columns": columns_of_a_task},
    epilog='Example: jumok look -m run "I am a student."',
)
@MODEL
@click.argument(
    "sentence", required=False, help="The sentence to begin with; a caption; or a picture, or a directory of pictures."
)
@click.option("--save", type=PATH, metavar="FILE", help="Write the page of this sentence to one HTML file and exit.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Port on 127.0.0.1.  [default: {PORT}, or the next free]",
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open the page in a browser.")
@click.option(
    "--rank-heads",
    type=PATH,
    metavar="FILE",
    help="Print how much worse the model is on FILE without each head; no page.",
)
@LANGUAGES
@reading_flags("A B", nargs=1, multiple=True)
@hardware_options
@JSON
def command(
    model: Path,
    sentence: str | None,
    save: Path | None,
    port: int | None,
    open_browser: bool,
    rank_heads: Path | None,
    hardware: dict[str, Any],
    as_json: bool,
    **reading: Any,
) -> None:
    """Explore the attention and search of a model in a browser.

    Every value that the model computes for a sentence can be seen. The page is served to this computer only; with
    --save it is one HTML file, which opens in any browser.
    """
    given = {name: value for name, value in reading.items() if value not in (None, ())}
    if rank_heads is not None:
        _rank(model, rank_heads, hardware, given, as_json)
        return
    if given:
        raise click.UsageError(f"--{next(iter(given))} says how the FILE of --rank-heads is read; give it with that.")
    session, start = open_session(model, sentence, **hardware)
    if save is not None:
        save_explorer(session, start, save)
        return
    _serve(session, start, port, open_browser)


def open_session(model: Path, sentence: str | None = None, **hardware: Any) -> tuple[Any, dict[str, Any]]:
    """What the explorer can be asked about a model or a run, and what its page begins with."""
    from jumok.lens.session import Session

    session = Session(_entries(model, hardware), model if (model / "run.json").exists() else None)
    loaded = session.model(0)
    if hasattr(loaded, "tokenizer"):
        return session, _start(model, loaded, sentence)
    session.pictures = _pictures(model, sentence)
    names = list(session.pictures)
    files = {name: str(path) for name, path in session.pictures.items()}  # for the Python that the page gives
    return session, {"path": str(model), "text": names[0], "samples": names, "files": files}


def _pictures(model: Path, given: str | None) -> dict[str, Path]:
    """The pictures that the page can be asked for, by their names."""
    from jumok.data.reading.directories import files_of_classes
    from jumok.data.reading.pictures import is_picture_name

    if given is None:
        raise InputError(f"Give a picture to begin with: jumok look -m {model} PICTURE.png")
    path = Path(given)
    if not path.is_dir():
        return {path.name: path}
    files = sorted(filter(is_picture_name, files_of_classes(path)))
    if not files:
        raise InputError(f"{path}: holds no pictures.")
    return {file.relative_to(path).as_posix(): file for file in files[:: -(-len(files) // MOST_PICTURES)]}


def _require_texts(loaded: Any, model: Path) -> None:
    """Refuse a model that reads no texts."""
    from jumok.lens.tracing import lens_module

    lens_module(loaded.task)  # fails if the task has none
    if not hasattr(loaded, "tokenizer"):
        raise ConfigError(
            f"{model}: heads are ranked on texts, and this model classifies pictures. "
            f"Its page shows what it looks at: jumok look -m {model} PICTURE.png"
        )


def save_explorer(session: Any, start: dict[str, Any], path: Path, say: Callable[[str], None] = say) -> None:
    """Write the page of a sentence to a file, and say what was left out."""
    from jumok.lens.saved import LARGEST_PAGE, LARGEST_REPLAY, save_page, saved_start

    saved = saved_start(session, start)
    save_page(saved, path)
    say(f"Saved {path} ({path.stat().st_size / 1e6:.1f} MB). It opens in any browser.")
    trace, others = saved["traces"][0]["trace"], saved["left_out"]
    if trace["unknown"]:
        say("The model knows no letter of this text: it reads single bytes, and what it makes of them means nothing.")
    arrays = trace["left_out"]
    if arrays:
        names = f"{counted(len(arrays), 'array')}, such as {', '.join(arrays[:3])}"
        say(f"Left out, because the page would be larger than {LARGEST_PAGE / 1e6:.0f} MB: {names}.")
    too_large = []
    for what in ("validation", "sentence"):
        kept, count = others.get(f"{what}s", [0, 0])
        if kept < count:
            too_large.append(f"{count - kept} of the {counted(count, what)} whose attention the training recorded")
    if too_large:
        room = f"{LARGEST_REPLAY / 1e6:.1f} MB of the page are for them"
        say(f"Left out, because only {room}: {'; '.join(too_large)}.")
    if others["parts"]:
        say(f"Left out, because the page holds one sentence: {counted(others['parts'], 'other sentence')}.")
    if others["models"]:
        say(f"Left out, because the page holds one model: {', '.join(others['models'])}.")


def _serve(session: Any, start: dict[str, Any], port: int | None, open_browser: bool) -> None:
    from jumok.lens.explorer import Explorer

    server = None
    for candidate in [port] if port is not None else [*range(PORT, PORT + 20), 0]:
        try:
            server = Explorer(session, candidate, start)
            break
        except ConfigError:
            if port is not None:
                raise
    assert server is not None  # the last candidate is any free port
    say(f"Open {server.url} in a browser. Press Ctrl-C to end.")
    if open_browser:
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


def _start(model: Path, loaded: Any, sentence: str | None) -> dict[str, Any]:
    """What the page begins with: a sentence, others to try, the path to name in code."""
    from jumok.training.records import read_sample_inputs

    samples = read_sample_inputs(model) if (model / "run.json").exists() else []
    if loaded.card.get("inputs") == ["train.en", "train.ko"]:  # the names that the demo gives to its corpus
        samples = [ANIMAL, "I am a student.", *samples]
    if sentence is None and not samples:
        raise InputError("Give a sentence to begin with: this model has no samples of its own.")
    return {"path": str(model), "text": samples[0] if sentence is None else sentence, "samples": samples[:SAMPLES]}


def _entries(model: Path, hardware: Mapping[str, Any]) -> list[Any]:
    """The model, and the checkpoints of its training."""
    from jumok.engines.loading import load
    from jumok.lens.session import Entry
    from jumok.training.records import CHECKPOINTS

    code = f'import jumok\n\nmodel = jumok.load({str(model)!r}, "torch")'
    entries = [Entry(model.resolve().name, partial(load, model, "torch", **hardware), code)]
    for path in sorted((model / CHECKPOINTS).glob("step-*")):
        other = (
            f"from pathlib import Path\n\nfrom jumok.training.checkpoint import load_group\n{code}\n"
            f'weights = load_group(Path({str(path.parent)!r}), {int(path.name.split("-")[1])}, "model")\n'
            "model.engine.model.load_state_dict(weights)"
        )
        entries.append(Entry(path.name, partial(_load_checkpoint, model, path, hardware), other))
    return entries


def _load_checkpoint(run: Path, checkpoint: Path, hardware: Mapping[str, Any]) -> Any:
    """The model of a run with the weights of one of its checkpoints."""
    from jumok.engines.loading import load
    from jumok.lens.tracing import torch_engine
    from jumok.training.checkpoint import load_group

    loaded = load(run, "torch", **hardware)
    weights = load_group(checkpoint.parent, int(checkpoint.name.split("-")[1]), "model")
    if weights is None:
        raise InputError(f"{checkpoint}: cannot be read any more; choose another checkpoint.")
    torch_engine(loaded).model.load_state_dict(weights)
    return loaded


def _rank(model: Path, file: Path, hardware: Mapping[str, Any], reading: dict[str, Any], as_json: bool) -> None:
    from jumok.data.examples import Rejections
    from jumok.engines.loading import load
    from jumok.lens.importance import measure_for, rank_heads, read_examples

    loaded = load(model, "torch", **hardware)
    _require_texts(loaded, model)
    if "languages" in reading and loaded.task != "translator":
        raise ConfigError(f"--languages has no effect on a {task_named(loaded.task).title}. Leave it out.")
    read = Rejections()
    examples = list(islice(read_examples(loaded, file, read, **reading), EXAMPLES))
    say_layouts(read)
    if not examples:
        raise InputError(f"{file}: has no usable examples.")
    say(f"Ranking heads on {counted(len(examples), 'example')} of {file}.")
    found = []
    for head in rank_heads(loaded, measure_for(loaded, examples, score=True)):
        if as_json:
            print_json({name: value for name, value in asdict(head).items() if name != "tokens"})
        found.append(head)
    if as_json:
        return
    print("attention         head  Δ log-probability  Δ score")
    for head in sorted(found, key=lambda head: head.log_prob):
        score = "" if head.score is None else f"{head.score:+8.2f}"
        print(f"{head.attention:16}  {head.head:4}  {head.log_prob:+17.4f} {score}")
