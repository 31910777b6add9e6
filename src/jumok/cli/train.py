"""jumok train: a translator, a classifier or a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.options import Json, Languages, Source, Target, Valid, print_json, valid_files
from jumok.cli.processes import is_follower
from jumok.cli.training import (
    Assignments,
    Command,
    Config,
    ContinueWithChanges,
    Epochs,
    Fresh,
    Minutes,
    Out,
    Preset,
    PrintConfig,
    Processes,
    Quiet,
    Seed,
    Shard,
    Steps,
    resolve_settings,
    run_training,
)

OneValid = Annotated[
    list[Path] | None,
    typer.Option("--valid", metavar="FILE", help="To measure on, not learned from; may be repeated."),
]


def train_translator_command(
    source: Source,
    out: Out,
    target: Target = None,
    valid: Valid = None,
    languages: Languages = None,
    preset: Preset = None,
    minutes: Minutes = None,
    steps: Steps = None,
    epochs: Epochs = None,
    assignments: Assignments = None,
    config: Config = None,
    seed: Seed = None,
    fresh: Fresh = False,
    continue_with_changes: ContinueWithChanges = False,
    print_config: PrintConfig = False,
    processes: Processes = 1,
    shard: Shard = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a translator on pairs of sentences.

    The same command again goes on where it stopped. Ctrl-C finishes the step and saves; twice leaves at once. RUN/model
    is the best model so far and can be used at any time: jumok translate -m RUN
    """
    from jumok.cli.precheck import look_before_training

    lengths = {"minutes": minutes, "steps": steps, "epochs": epochs}
    settings = resolve_settings(config, {"preset": preset, "seed": seed}, lengths, assignments)
    measured_on = valid_files(valid)
    if not is_follower() and not (out / "run.json").exists():
        look_before_training([source] if target is None else [source, target], measured_on, languages)
    run_training(
        Command(
            "train_translator",
            (source, target),
            measured_on,
            out,
            settings,
            fresh,
            continue_with_changes,
            quiet,
            as_json,
            processes,
            shard,
            {"languages": languages},
        ),
        print_config=print_config,
    )


def train_classifier_command(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", help="TSV, CSV or JSONL with labels, or a directory with one for each class."),
    ],
    out: Out,
    valid: OneValid = None,
    preset: Preset = None,
    minutes: Minutes = None,
    steps: Steps = None,
    epochs: Epochs = None,
    assignments: Assignments = None,
    config: Config = None,
    seed: Seed = None,
    fresh: Fresh = False,
    continue_with_changes: ContinueWithChanges = False,
    print_config: PrintConfig = False,
    processes: Processes = 1,
    shard: Shard = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Say what TF-IDF with logistic regression reaches (needs scikit-learn).")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a classifier on texts with labels.

    The same command again goes on where it stopped. RUN/model is the best model so far: jumok classify -m RUN
    """
    if baseline:
        from jumok.recipes.baseline import require_scikit_learn

        require_scikit_learn()
    lengths = {"minutes": minutes, "steps": steps, "epochs": epochs}
    settings = resolve_settings(config, {"preset": preset, "seed": seed}, lengths, assignments)
    run_training(
        Command(
            "train_classifier",
            tuple(data),
            valid,
            out,
            settings,
            fresh,
            continue_with_changes,
            quiet,
            as_json,
            processes,
            shard,
        ),
        print_config=print_config,
    )
    if baseline and not print_config and not is_follower():
        _say_baseline(out, as_json)


def _say_baseline(run: Path, as_json: bool) -> None:
    from jumok.cli.metrics import named_metrics
    from jumok.recipes.baseline import baseline_scores

    scores = baseline_scores(run)
    if as_json:
        print_json({"event": "baseline", **scores})
    else:
        shown = "  ".join(f"{name} {value}" for name, value in named_metrics(scores).items())
        print(f"For comparison, TF-IDF + logistic regression on the same texts: {shown}")


def train_lm_command(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT", help="Text files; a blank line ends a passage.")],
    out: Out,
    valid: OneValid = None,
    preset: Preset = None,
    minutes: Minutes = None,
    steps: Steps = None,
    epochs: Epochs = None,
    assignments: Assignments = None,
    config: Config = None,
    seed: Seed = None,
    fresh: Fresh = False,
    continue_with_changes: ContinueWithChanges = False,
    print_config: PrintConfig = False,
    processes: Processes = 1,
    shard: Shard = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a language model on text.

    The same command again goes on where it stopped. RUN/model is the best model so far: jumok generate -m RUN
    """
    lengths = {"minutes": minutes, "steps": steps, "epochs": epochs}
    settings = resolve_settings(config, {"preset": preset, "seed": seed}, lengths, assignments)
    run_training(
        Command(
            "train_lm",
            tuple(texts),
            valid,
            out,
            settings,
            fresh,
            continue_with_changes,
            quiet,
            as_json,
            processes,
            shard,
        ),
        print_config=print_config,
    )
