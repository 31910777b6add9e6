"""The explorer as one file: the page with its modules, its style and its traces inside. It opens by `file://`."""

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

from jumok.files import REAL_FILES, replace_file_durably
from jumok.lens.explorer import embedded_json, import_map, web_files
from jumok.lens.page import document
from jumok.lens.session import Session
from jumok.lens.traces import Trace

LARGEST_PAGE = 3_000_000  # bytes; arrays that do not fit are named in the page
LARGEST_REPLAY = 300_000  # of these, for the attention recorded by a training
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def saved_page(start: dict[str, Any]) -> str:
    """The page. `start` has its `models` and `traces`, as the server would send them."""
    web = web_files()

    def inline(name: str) -> str:
        return "data:text/javascript;base64," + base64.b64encode(web[name].encode()).decode("ascii")

    texts = {name.removesuffix(".json"): text for name, text in web.items() if name.endswith(".json")}
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return (
        web["index.html"]
        .replace("<!--import-map-->", f'{policy}<script type="importmap">{import_map(list(web), inline)}</script>')
        .replace("<!--start-->", embedded_json(start | {"server": False, "texts": texts}))
        .replace("<!--style-->", f"<style>{web['style.css']}</style>")
        .replace("<!--main-->", '<script type="module">import "jumok/main.js";</script>')
    )


def save_page(start: dict[str, Any], path: Path) -> None:
    """Write the page to a file."""
    replace_file_durably(REAL_FILES, path, saved_page(start).encode())


def saved_start(session: Session, start: dict[str, Any]) -> dict[str, Any]:
    """What a saved page needs instead of a server: its model, the trace of its sentence, the log of the training and
    its replay. What it does not hold, and a person could look for, is named in `left_out`."""
    request = {"model": 0, "text": start["text"]}
    replay, left_out = _replay(session)
    first, *others = session.models()
    saved = {
        **start,
        "samples": [],
        "training": session.training(),
        "models": [first],
        "log": session.log(),
        "replay": replay,
        "left_out": {**left_out, "models": [model["title"] for model in others]},
        "traces": [],
    }
    if first["task"] == "classifier":
        saved["attributions"] = [{"request": request, "attribution": session.attribution(request)}]
    if first["task"] == "translator":  # greedy search beside beam search, without its arrays
        greedy = session.trace({**request, "beam": 1}) | {"arrays": {}, "predictions": None, "glossary": {}}
        saved["traces"].append({"request": {**request, "beam": 1}, "trace": greedy})
    room = LARGEST_PAGE - len(saved_page(saved).encode())
    trace = session.trace(request, room=room)
    saved["traces"].insert(0, {"request": request, "trace": trace})
    saved["left_out"]["parts"] = len(trace["facts"].get("sentences", [""])) - 1
    return saved


def _replay(session: Session) -> tuple[dict[int, Any], dict[str, list[int]]]:
    """The recorded attention of a training by step: of as many of its first sentences as there is room for at all
    validations; if there is too little for one, at some of them, evenly spread, with the first and the last. And how
    many of all validations and sentences these are."""
    steps = session.replay(None)
    if not steps:
        return {}, {}
    last = session.replay(steps[-1])
    sizes = [len(json.dumps(last[:count])) * len(steps) for count in range(1, len(last) + 1)]
    sentences = max(1, sum(size <= LARGEST_REPLAY for size in sizes))
    fit = max(2, LARGEST_REPLAY // max(1, len(json.dumps(last[:1]))))
    spread = {round(place * (len(steps) - 1) / max(1, fit - 1)) for place in range(fit)}
    chosen = steps if len(steps) <= fit else [steps[place] for place in sorted(spread)]
    kept = {step: session.replay(step)[:sentences] for step in chosen}
    return kept, {"validations": [len(chosen), len(steps)], "sentences": [min(sentences, len(last)), len(last)]}


def framed_page(trace: Trace, height: int = 780) -> str:
    """The page of a trace inside of an `iframe`, for a notebook. Like a saved page it cannot run the model."""
    model = {"id": 0, "title": trace.task, "code": "", "task": trace.task, "config": trace.facts["config"]}
    card = {"languages": trace.facts.get("languages")}
    request = {"model": 0, "text": trace.text}
    start = {
        "text": trace.text,
        "models": [model | {"card": card}],
        "traces": [{"request": request, "trace": document(trace, room=LARGEST_PAGE)}],
    }
    frame = f'width="100%" height="{height}" style="border: 0" title="{escape(repr(trace))}"'
    return f'<iframe srcdoc="{escape(saved_page(start))}" {frame}></iframe>'
