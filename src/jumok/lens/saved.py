"""The explorer as one file: the page with its modules, its style and its traces inside. It opens by `file://`."""

import base64
from pathlib import Path
from typing import Any

from jumok.files import REAL_FILES, replace_file_durably
from jumok.lens.explorer import embedded_json, import_map, web_files
from jumok.lens.session import Session

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
    return {**start, "models": session.models(), "traces": traces, "log": session.log()}
