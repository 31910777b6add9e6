"""The table of tasks: one entry a task, with its names and references to its parts.
References, "module:name", are imported only by `resolve`: this file imports neither torch nor any other part of Jumok.
A new task is one more entry here, or one `register` call elsewhere; so is another architecture for a task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from jumok.errors import ConfigError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Task:
    """Names of one task, and where its parts are."""

    name: str  # in config.json, run.json and card.json
    title: str  # in messages
    train_command: str  # jumok train <train_command>
    usage: str  # the command that uses a model; {run} is its directory, {text} an example input
    encoder: str  # key of ENCODERS
    config: str  # a ModelConfig
    model: str  # an nn.Module, made from the config
    recipe: str  # how it is trained
    facade: str  # what `jumok.load` returns; has `open(bundle, encoder, engine, **options)` and `task`
    evaluation: str  # evaluate(model, files, **options)
    certify: str | None = None  # compares an export with the original; None: cannot be exported
    conversion: str | None = None  # config, weights, tokens → CTranslate2 model specification
    lens: str | None = None  # trace(model, text, **options); None: cannot be looked into
    command: str | None = None  # the command-line function behind `jumok train <train_command>`
    part_of: str | None = None  # the task whose models hold such a model, in messages
    inputs: str = "texts"  # what a model takes, in messages
    holds: str | None = None  # holds(path, options): tells its files from those of tasks with the same train_command
    classify: str | None = None  # classify(model, files, out, **options) of `jumok classify`; None: not a classifier


@dataclass(frozen=True)
class Demo:
    """A tour of a few minutes on built-in data."""

    name: str  # jumok demo <name>
    run: str  # run_demo(training)
    minutes: float  # of training
    what: str  # what is trained, and on what


@dataclass(frozen=True)
class EncoderEntry:
    """A kind of input encoder: what turns a task's inputs into ids."""

    name: str  # in card.json
    file: str  # its file in a model directory
    reference: str  # a class with `from_bytes`


TASKS: dict[str, Task] = {}
ENCODERS: dict[str, EncoderEntry] = {}
DEMOS: dict[str, Demo] = {}
ARCHITECTURES: dict[tuple[str, str], Task] = {}  # (task, architecture) → the task's entry with the parts of that one


def register(task: Task) -> None:
    """Add a task, or replace the one of that name."""
    TASKS[task.name] = task


def register_encoder(entry: EncoderEntry) -> None:
    """Add a kind of encoder, or replace the one of that name."""
    ENCODERS[entry.name] = entry


def register_demo(demo: Demo) -> None:
    """Add a demo, or replace the one of that name."""
    DEMOS[demo.name] = demo


def register_architecture(task: str, name: str, **parts: str | None) -> None:
    """Add an architecture other than the Transformer for a task: `parts` are the fields of its entry that differ."""
    ARCHITECTURES[task, name] = replace(task_named(task), **parts)  # type: ignore[arg-type]


def task_of_config(values: Mapping[str, Any]) -> Task:
    """The entry of the task that a config names, as in config.json, with the parts of its architecture.
    A config without "architecture" is a Transformer."""
    task, name = task_named(values.get("task", "translator")), values.get("architecture")
    if name is None:
        return task
    known = [known for of_task, known in ARCHITECTURES if of_task == task.name]
    if name not in known:
        raise ConfigError(f"Unknown architecture {name!r} of a {task.title}.{did_you_mean(str(name), known)}")
    return ARCHITECTURES[task.name, name]


def task_named(name: object) -> Task:
    """The entry of a task; an unknown name is a ConfigError."""
    if not isinstance(name, str) or name not in TASKS:
        raise ConfigError(f"Unknown task {name!r}.{did_you_mean(str(name), TASKS)}")
    return TASKS[name]


def resolve(reference: str) -> Any:
    """Import the object that a reference "module:name" stands for."""
    module, name = reference.split(":")
    return getattr(import_module(module), name)


register_encoder(EncoderEntry("tokenizer", "tokenizer.model", "jumok.tokenizer:Tokenizer"))
register_encoder(EncoderEntry("pictures", "pictures.json", "jumok.pictures:PictureEncoder"))


def _register_built_in(name: str, title: str, class_prefix: str, train_command: str, usage: str) -> None:
    """Register a task whose parts are where all built-in ones are: in files of its name, one in every layer."""
    register(
        Task(
            name=name,
            title=title,
            train_command=train_command,
            usage=usage,
            encoder="tokenizer",
            config=f"jumok.model.config.{name}:{class_prefix}Config",
            model=f"jumok.model.{name}:{class_prefix}",
            recipe=f"jumok.recipes.{name}:{class_prefix}Recipe",
            facade=f"jumok.engines.{name}.text:Text{class_prefix}",
            evaluation=f"jumok.recipes.evaluating.{name}:evaluate",
            certify=f"jumok.recipes.certifying.{name}:certify",
            conversion=f"jumok.engines.{name}.ctranslate2:make_spec",
            lens=f"jumok.lens.{name}:trace",
            command=f"jumok.cli.train_{name}:command",
            classify="jumok.cli.classify:classify_texts" if name == "classifier" else None,
        )
    )


register(
    Task(
        name="image_classifier",
        title="picture classifier",
        train_command="classifier",  # the same command makes it if it is given pictures
        usage="jumok classify -m {run} PICTURE.png",
        encoder="pictures",
        config="jumok.model.config.image_classifier:ImageClassifierConfig",
        model="jumok.model.image_classifier:ImageClassifier",
        recipe="jumok.recipes.image_classifier:ImageClassifierRecipe",
        facade="jumok.engines.image_classifier.pictures:PictureClassifier",
        evaluation="jumok.recipes.evaluating.image_classifier:evaluate",
        lens="jumok.lens.image_classifier:trace",
        classify="jumok.cli.classify_pictures:classify_pictures",
        inputs="pictures",
        holds="jumok.data.reading.pictures:holds_pictures",
    )
)
_register_built_in("translator", "translator", "Translator", "translator", "echo {text} | jumok translate -m {run}")
_register_built_in("classifier", "classifier", "Classifier", "classifier", "echo {text} | jumok classify -m {run}")
_register_built_in("language_model", "language model", "LanguageModel", "lm", "jumok generate -m {run} --prompt {text}")

register_architecture(
    "translator",
    "recurrent",
    title="recurrent translator",
    config="jumok.model.config.recurrent:RecurrentConfig",
    model="jumok.model.recurrent:RecurrentTranslator",
    certify=None,
    conversion=None,
)

register(
    Task(
        name="image_tokens",
        title="set of image tokens",
        train_command="image-tokens",
        usage="jumok info -m {run}",
        encoder="pictures",
        config="jumok.model.config.image_tokens:ImageTokensConfig",
        model="jumok.model.image_tokens:ImageTokens",
        recipe="jumok.recipes.image_tokens:ImageTokensRecipe",
        facade="jumok.engines.image_tokens:ImageTokenizer",
        evaluation="jumok.recipes.evaluating.image_tokens:evaluate",
        part_of="painter",
    )
)
register(
    Task(
        name="painter",
        title="painter",
        train_command="painter",
        usage="jumok paint -m {run} {text} -o picture.png",
        encoder="tokenizer",
        config="jumok.model.config.painter:PainterConfig",
        model="jumok.model.painter:Painter",
        recipe="jumok.recipes.painter:PainterRecipe",
        facade="jumok.engines.painter.text:TextPainter",
        evaluation="jumok.recipes.evaluating.painter:evaluate",
        lens="jumok.lens.painter:trace",
        command="jumok.cli.train_painter:command",
    )
)

register_demo(
    Demo(
        "translator",
        "jumok.cli.demo_translator:run_demo",
        2.8,
        "from English to Korean, tested on combinations of words that do not occur in the training data",
    )
)
register_demo(Demo("classifier", "jumok.cli.demo_classifier:run_demo", 1.0, "learns from reviews"))
register_demo(Demo("lm", "jumok.cli.demo_language_model:run_demo", 1.0, "a language model of Korean sentences"))
register_demo(Demo("vision", "jumok.cli.demo_vision:run_demo", 1.6, "a classifier of pictures, from drawn shapes"))
register_demo(Demo("painter", "jumok.cli.demo_painter:run_demo", 8.5, "learns from drawn scenes with captions"))
register_demo(
    Demo(
        "before-attention",
        "jumok.cli.demo_before_attention:run_demo",
        6.0,
        "three translators in equal times: recurrent networks without and with attention, and a Transformer",
    )
)
