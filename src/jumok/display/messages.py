"""Events in words. Messages name Python arguments, in backticks; the command line turns these into its options."""

from collections.abc import Iterator

from jumok.data.examples import describe_reasons
from jumok.display.status import Event, Status, describe_metrics, duration
from jumok.errors import counted

UNBALANCED = 1.5  # ratio of the largest class to the smallest
# Phases that are announced where there is no panel. Validations and checkpoints have lines of their own, or none.
_ANNOUNCED = ("reading", "vocabulary", "encoding", "measuring", "averaging", "exporting", "certifying")


def describe(event: Event, status: Status) -> Iterator[str]:
    """An event in lines of text; no lines for one that needs none."""
    kind = event["event"]
    if kind == "corpus":
        yield from _describe_corpus(event)
    elif kind == "file":
        yield event["what"]
    elif kind == "stage":
        yield status.stage
    elif kind == "translating":
        more = f"; {counted(event['new'], 'new pair')} to learn from" if "new" in event else ""
        yield f"{status.phase}: {event['done']:,} of {counted(event['pairs'], 'pair')}{more}"
    elif kind == "plan":  # the settings that were chosen, and why
        yield from (f"{choice['name']} = {choice['value']}  ({choice['why']})" for choice in event["choices"])
    elif kind == "resumed":
        yield f"continuing from step {event['step']:,} of {status.total:,}"
    elif kind == "already_done":
        yield f"This training is already finished, at step {event['step']:,}. `fresh=True` starts again."
    elif kind == "train":
        yield describe_step(status)
    elif kind == "valid":
        yield describe_validation(event)
        yield from (f"  {sample['source']}  →  {sample['output']}" for sample in event.get("samples", [])[:1])
    elif kind in _ANNOUNCED:
        yield f"{status.phase} …"
    elif kind == "finished" and "certificate" in event:
        equal, probes = event["certificate"]["equal"], event["certificate"]["sources"]
        yield f"Exported to CTranslate2: {equal:,} of {counted(probes, 'probe')} with the same output as PyTorch."


def _describe_corpus(event: Event) -> Iterator[str]:
    """Its size, vocabulary and classes; and the examples that were left out, the most frequent reason first."""
    train, valid = _examples(event["examples"], event), f"{event['valid_examples']:,}"
    learned = f" ({event['tokens']:,} tokens to learn)" if event["tokens"] != event["examples"] else ""
    yield f"corpus: {train} to train on, {valid} to validate on{learned}"
    if why := event["tokenizer"]["why"]:  # bytes of pictures need no vocabulary
        yield f"vocabulary: {event['tokenizer']['size']:,} tokens ({why})"
    if classes := event["classes"]:
        yield "classes: " + ", ".join(f"{name} {count:,}" for name, count in classes.items())
        if max(classes.values()) > UNBALANCED * min(classes.values()):
            yield "  unbalanced: in the loss, classes are weighted by 1 / √frequency"
    if reasons := event["rejected"]["reasons"]:
        yield f"left out: {_examples(event['rejected']['total'], event)}"
        yield from (f"  {line}" for line in describe_reasons(reasons))


def _examples(number: int, event: Event) -> str:
    """3 pairs, 1 text: `kind` is what several examples are called."""
    return counted(number, event["kind"].removesuffix("s"), event["kind"])


def describe_validation(event: Event) -> str:
    """The metrics of a validation in one line; of an average also whether it becomes the model."""
    loss = f"  loss {event['loss']:.3f}" if "loss" in event else ""
    metrics = f"{describe_metrics(event)}{loss}"
    if "averaged" not in event:
        return f"validation at step {event['step']:,}: {metrics}"
    used = "better than the best checkpoint: it is the model" if event["best"] else "not better: it is not used"
    return f"average of the {event['averaged']} checkpoints: {metrics}  ({used})"


def describe_step(status: Status) -> str:
    """One line about the progress of the training."""
    speed = "" if status.speed is None else f"  {status.speed:,.0f} {status.unit}/s"
    return (
        f"step {status.step:,}/{status.total:,}  epoch {status.epoch}  loss {status.loss:.3f}  "
        f"lr {status.learning_rate:.2e}{speed}  time left {duration(status.seconds_left)}"
    )


def describe_warning(event: Event) -> str | None:
    """A warning that is printed even if nothing else is; None for most events."""
    kind = event["event"]
    if kind == "finding":
        first = f", first at {event['where']}" if event.get("where") else ""
        return f"{event['what']}{first}. `jumok check` shows more."
    if kind == "rejected":
        return f"a checkpoint cannot be used and is skipped: {event['path']}: {event['reason']}"
    if kind == "unsaved":
        return (
            f"{event['path']}: cannot be written ({event['reason']}); the training goes on, but `jumok look` will not "
            "show the attention of every validation"
        )
    if kind == "restarted":
        return (
            f"{event['path']}: there is no checkpoint, though the log had come to step {event['step']:,}: "
            "the training starts again from the beginning, and its first validation replaces the model"
        )
    if kind == "memory":
        return (
            f"not enough memory: from step {event['step'] + 1:,} on, every batch is computed in {event['parts']} parts"
        )
    if kind == "finished" and "not_exported" in event:
        return f"the model is not exported to CTranslate2: {event['not_exported']}"
    if kind == "resumed" and event["changed"]:
        changes = ", ".join(f"{name} {old} → {new}" for name, (old, new) in event["changed"].items())
        return f"the result will not be bit-identical to an uninterrupted training: {changes}"
    return None
