"""The explorer as one file: the page with its modules, its style and its traces inside. It opens by `file://`."""

import base64
from html import escape
from pathlib import Path
from typing import Any

from jumok.files import REAL_FILES, replace_file_durably
from jumok.lens.explorer import embedded_json, import_map, web_files
from jumok.lens.page import document
from jumok.lens.session import Session
from jumok.lens.traces import Trace

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
    """What a saved page needs instead of a server: models, the trace of its sentence, the log of the training."""
    request = {"model": 0, "text": start["text"]}
    traces = [{"request": request, "trace": session.trace(request, everything=True)}]
    saved = {
        **start,
        "training": session.run is not None,
        "models": session.models(),
        "traces": traces,
        "log": session.log(),
    }
    if session.model(0).task == "classifier":
        saved["attributions"] = [{"request": request, "attribution": session.attribution(request)}]
    return saved


def framed_page(trace: Trace, height: int = 780) -> str:
    """The page of a trace inside of an `iframe`, for a notebook. Like a saved page it cannot run the model."""
    model = {"id": 0, "title": trace.task, "code": "", "task": trace.task, "config": trace.facts["config"]}
    card = {"languages": trace.facts.get("languages")}
    request = {"model": 0, "text": trace.text}
    start = {
        "text": trace.text,
        "models": [model | {"card": card}],
        "traces": [{"request": request, "trace": document(trace, everything=True)}],
        "training": False,
    }
    frame = f'width="100%" height="{height}" style="border: 0" title="{escape(repr(trace))}"'
    return f'<iframe srcdoc="{escape(saved_page(start))}" {frame}></iframe>'
