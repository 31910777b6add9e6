"""The explorer's server: it serves its own files to its own page, checks requests, and sends what was computed."""

import html
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import FROZEN, make_classifier, make_language_model, make_translator

from jumok import lens
from jumok.cli.look import save_explorer
from jumok.engines.loading import load
from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.errors import ConfigError, ShapeError
from jumok.lens import saved as saved_module
from jumok.lens import translator as lens_translator
from jumok.lens.explorer import Explorer, web_files
from jumok.lens.glossary import MEANINGS, ROTATED
from jumok.lens.saved import LARGEST_PAGE, saved_page, saved_start
from jumok.lens.session import Entry, Session
from jumok.model.config import preset
from jumok.model.translator import Translator
from jumok.tokenizer import Tokenizer

TEXT, TARGET = "The red horse likes the horse.", "빨간 말이 말을 좋아해요."


@pytest.fixture(scope="module")
def session() -> Session:
    return Session([Entry("one", lambda: load(FROZEN, "torch")), Entry("two", lambda: load(FROZEN, "torch"))])


@pytest.fixture(scope="module")
def server(session: Session) -> Iterator[Explorer]:
    explorer = Explorer(session, 0, {"text": TEXT})
    threading.Thread(target=explorer.serve_forever, daemon=True).start()
    yield explorer
    explorer.shutdown()
    explorer.server_close()


def ask(
    server: Explorer, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        headers = {"Content-Type": "application/json", **headers}
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=600)) as connection:
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def test_the_page_and_its_files_are_served_with_a_policy(server: Explorer) -> None:
    status, headers, body = ask(server, "GET", "/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert f'nonce="{nonce}"'.encode() in body
    assert ask(server, "GET", "/")[1]["Content-Security-Policy"] != policy
    for name, text in web_files().items():
        status, headers, body = ask(server, "GET", f"/web/{name}")
        assert (status, body) == (200, text.encode())
        assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/web/../session.py", "/web/%2e%2e/session.py", "/web//etc/passwd", "/etc/passwd", "/web/", "/api/unknown"]
)
def test_no_path_of_a_request_is_opened(server: Explorer, path: str) -> None:
    assert ask(server, "GET", path)[0] == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "127.0.0.1:1"},
    ],
)
def test_a_page_of_another_site_is_refused(server: Explorer, headers: dict[str, str]) -> None:
    for method, path, body in (("GET", "/api/models", None), ("POST", "/api/trace", {"text": TEXT})):
        assert ask(server, method, path, body, **headers)[0] == 403


def test_a_trace_and_its_arrays_are_what_the_model_computed(server: Explorer, session: Session) -> None:
    status, _, body = ask(server, "POST", "/api/trace", {"text": TEXT})
    found = json.loads(body)
    direct = lens.trace(session.model(0), TEXT)
    assert (status, found["output"], found["text"]) == (200, direct.output, TEXT)
    assert found["sides"]["encoder"] == list(direct.sides["encoder"])
    for name, described in found["arrays"].items():
        assert described["shape"] == list(direct[name].shape)
        sent = ask(server, "GET", f"/api/array?trace={found['id']}&name={name}")[2]
        np.testing.assert_array_equal(
            np.frombuffer(sent, "<f4").reshape(described["shape"]), direct[name].values.astype(np.float32)
        )
    probabilities = direct["probabilities"].values
    for row, prediction in enumerate(found["predictions"]):
        assert prediction["top"][0]["probability"] == pytest.approx(float(probabilities[row].max()))


def test_changes_hold_for_one_request(server: Explorer) -> None:
    def output(**request: Any) -> Any:
        status, _, body = ask(server, "POST", "/api/trace", {"text": TEXT, **request})
        assert status == 200, body
        return json.loads(body)

    before = output()
    off = output(changes={"heads": [["decoder.0.cross", 0, "zero"]], "beta": 0.1, "positions": "removed"})
    assert off["facts"]["changes"]["heads"] == [["decoder.0.cross", 0, "zero"]]
    after = output()
    assert {**after, "id": ""} == {**before, "id": ""}
    assert off["predictions"] != before["predictions"]


def test_a_search_ends_when_the_page_closes_the_connection(
    server: Explorer, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, closed, over = session.trace, threading.Event(), threading.Event()
    steps: list[bool] = []

    def checked(contents: Any, check: Any) -> Any:
        def step() -> None:
            steps.append(closed.is_set())
            if len(steps) == 3:  # the first is before the model runs
                closed.wait(600)
            check()

        try:
            return trace(contents, check=step)
        finally:
            over.set()

    monkeypatch.setattr(session, "trace", checked)
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=600)) as connection:
        connection.request("POST", "/api/trace", json.dumps({"text": TEXT}), {"Content-Type": "application/json"})
        while len(steps) < 3:
            over.wait(0.01)
    closed.set()
    assert over.wait(600)
    assert len(steps) == 3


def test_a_token_is_forced(server: Explorer) -> None:
    first = json.loads(ask(server, "POST", "/api/trace", {"text": TEXT})[2])
    token = first["predictions"][0]["top"][3]["id"]
    forced = json.loads(ask(server, "POST", "/api/trace", {"text": TEXT, "force": [token]})[2])
    assert forced["facts"]["chosen"][0] == token
    assert forced["search"]["nodes"][1]["reason"] == "forced"


@pytest.mark.parametrize(
    ("request_body", "message"),
    [
        ({"text": ""}, "no tokens"),
        ({"text": 5}, "text"),
        ({}, "text"),
        ({"text": "x", "path": "/etc/passwd"}, "path"),
        ({"text": "x", "model": 7}, "no model 7"),
        ({"text": "x", "changes": {"beta": -1}}, "beta"),
        ({"text": "x", "changes": {"heads": [["decoder.9.cross", 0, "zero"]]}}, "decoder.9.cross"),
        ({"text": "x", "beam": 1000}, "beam"),
        ({"text": "x", "changes": {"positions": 10**9}}, "positions"),
        ({"text": "x" * 5000}, "The text has 5,000 characters; at most 4,000"),
        ({"text": "x", "force": [10**9]}, "not the id"),
    ],
)
def test_a_wrong_request_is_one_clear_error(server: Explorer, request_body: dict[str, Any], message: str) -> None:
    status, _, body = ask(server, "POST", "/api/trace", request_body)
    assert status == 422
    assert message in json.loads(body)["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_request_that_is_no_json_object_is_refused(server: Explorer, body: bytes) -> None:
    assert ask(server, "POST", "/api/trace", body)[0] == 400
    assert ask(server, "POST", "/api/trace", b"{}", **{"Content-Type": "text/plain"})[0] == 400


def test_heads_are_ranked_one_by_one(server: Explorer, session: Session) -> None:
    status, _, body = ask(server, "POST", "/api/rank", {"text": TEXT, "target": TARGET})
    heads = [json.loads(line) for line in body.splitlines()]
    assert status == 200
    assert len(heads) == 2 * (1 + 1 + 1)
    model = session.model(0)
    [before] = model.engine.score(model.tokenizer.encode([TEXT]), model.tokenizer.encode([TARGET]))
    with lens.changed(model, heads={("decoder.0.cross", 1): "zero"}):
        [after] = model.engine.score(model.tokenizer.encode([TEXT]), model.tokenizer.encode([TARGET]))
    [head] = [one for one in heads if (one["attention"], one["head"]) == ("decoder.0.cross", 1)]
    assert head["log_prob"] == pytest.approx(float(np.mean(after) - np.mean(before)), abs=1e-5)
    np.testing.assert_allclose(head["tokens"], np.array(after) - np.array(before), atol=1e-5)


def test_a_port_that_is_taken_is_an_error(server: Explorer, session: Session) -> None:
    with pytest.raises(ConfigError, match=f"Port {server.server_port} cannot be used"):
        Explorer(session, server.server_port)


def test_a_text_cannot_leave_its_element_in_the_page(session: Session) -> None:
    evil = "</script><script>alert(1)</script> cat"
    page = saved_page(saved_start(session, {"text": evil}))
    assert "<script>alert(1)" not in page


def test_a_large_page_names_what_it_left_out(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = saved_start(session, {"text": TEXT})
    whole = saved["traces"][0]["trace"]
    assert whole["left_out"] == []
    assert all("data" in described for described in whole["arrays"].values())
    assert saved["left_out"]["models"] == ["two"]
    assert [model["title"] for model in saved["models"]] == ["one"]
    size = len(saved_page(saved).encode()) - 20_000
    monkeypatch.setattr(saved_module, "LARGEST_PAGE", size)
    small = saved_start(session, {"text": TEXT})
    cut = small["traces"][0]["trace"]
    assert cut["left_out"]
    assert not [name for name in cut["left_out"] if "data" in cut["arrays"][name]]
    assert "data" in cut["arrays"]["decoder.0.cross.weights"]
    assert size - 10_000 < len(saved_page(small).encode()) <= size


def test_a_page_of_a_base_model_is_not_larger_and_names_what_it_lacks(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lens_translator, "longest_output", lambda *_: 3)
    model = Translator(preset("base", vocabulary=tokenizer.size)).eval()  # untrained: it need not be good
    session = Session([Entry("base", lambda: TextTranslator(TorchTranslator(model), tokenizer))])
    messages: list[str] = []
    save_explorer(session, {"text": "cat dog bird " * 6, "path": "run"}, tmp_path / "page.html", messages.append)
    assert (tmp_path / "page.html").stat().st_size <= LARGEST_PAGE
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    trace = json.loads(page.split('id="start">')[1].split("</script>")[0])["traces"][0]["trace"]
    assert {name for name, array in trace["arrays"].items() if "data" not in array} == set(trace["left_out"])
    [said] = [message for message in messages if "would be larger than 3 MB" in message]
    assert f"{len(trace['left_out'])} arrays, such as {trace['left_out'][0]}" in said


@pytest.mark.parametrize("task", ["translator", "classifier", "language_model"])
def test_a_text_beyond_the_limit_of_a_model_is_an_error_that_names_it(
    tokenizer: Tokenizer, tmp_path: Path, task: str
) -> None:
    limit: dict[str, object] = {"positions": "learned", "max_length": 16}
    if task == "translator":  # whose long sources are split into parts
        with pytest.raises(ShapeError, match="does not fit learned positions, which end at 16"):
            lens.trace(make_translator(tokenizer, **limit), "cat", target="cat " * 30)
        return
    if task == "classifier":
        model: Any = make_classifier(tokenizer, tmp_path, window=0, **limit)
    else:
        model = make_language_model(tokenizer, tmp_path, **limit)
    with pytest.raises(ShapeError, match="does not fit learned positions, which end at 16"):
        lens.trace(model, "cat " * 30)


def test_a_short_training_is_replayed_with_all_its_sentences_that_fit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = [{"source": [], "target": [], "arrays": "x" * 40_000} for _ in range(4)]
    monkeypatch.setattr(session, "replay", lambda step: [10, 20] if step is None else recorded)
    saved = saved_start(session, {"text": TEXT, "path": "run"})
    assert {step: len(sentences) for step, sentences in saved["replay"].items()} == {10: 3, 20: 3}
    assert saved["left_out"]["sentences"] == [3, 4]
    assert saved["left_out"]["validations"] == [2, 2]


def test_a_long_training_is_replayed_from_first_to_last_validation(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replay(step: int | None) -> Any:
        return list(range(10, 510, 10)) if step is None else [{"number": n, "data": "x" * 9_000} for n in range(3)]

    monkeypatch.setattr(session, "replay", replay)
    saved = saved_start(session, {"text": TEXT})
    steps = list(saved["replay"])
    assert (steps[0], steps[-1]) == (10, 500)
    assert 20 < len(steps) < 40
    assert {len(sentences) for sentences in saved["replay"].values()} == {1}
    assert saved["left_out"]["validations"] == [len(steps), 50]
    assert saved["left_out"]["sentences"] == [1, 3]


def test_a_trace_shows_itself_in_a_notebook_as_the_page(session: Session) -> None:
    shown = lens.trace(session.model(0), TEXT)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    inner = html.unescape(shown.split('srcdoc="')[1].split('"')[0])
    start = json.loads(inner.split('id="start">')[1].split("</script>")[0])
    assert start["traces"][0]["trace"]["output"] == session.model(0).translate(TEXT)


def test_the_log_of_a_run_is_served(tmp_path: Path, session: Session) -> None:
    (tmp_path / "log.jsonl").write_text(
        '{"event": "train", "step": 1}\n{"event": "valid", "step": 1}\n', encoding="utf-8"
    )
    assert Session(session.entries, tmp_path).log() == [{"event": "train", "step": 1}, {"event": "valid", "step": 1}]
    with open(tmp_path / "log.jsonl", "a", encoding="utf-8") as log:
        log.write('{"event": "train", "st')  # the training is writing it
    assert len(Session(session.entries, tmp_path).log()) == 2
    assert session.log() == []


def test_both_languages_have_all_the_words_of_the_page() -> None:
    import re

    web = web_files()
    english, korean = json.loads(web["en.json"]), json.loads(web["ko.json"])
    assert english.keys() == korean.keys()
    scripts = "\n".join(text for name, text in web.items() if name.endswith(".js"))
    used = set(re.findall(r'\b(?:t|forTask)\("([^"]+)"', scripts))
    assert used <= english.keys()
    templates = re.findall(r"\b(?:t|forTask)\(`([^`]+)`", scripts)
    patterns = [re.sub(r"\\\$\\\{[^}]*\\\}", ".+", re.escape(key)) for key in templates]
    assert all(any(re.fullmatch(pattern, key) for key in english) for pattern in patterns)
    for key, text in english.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", korean[key])), key


def test_the_page_names_no_other_site() -> None:
    import re

    for name, text in web_files().items():
        found = re.findall(r"https?://[^\s\"'`)]+", text)
        assert not [address for address in found if "www.w3.org/" not in address], name


def test_formulas_in_words_are_those_of_the_glossary() -> None:
    english = json.loads(web_files()["en.json"])
    said = {key.removeprefix("formula."): text for key, text in english.items() if key.startswith("formula.")}
    assert said.items() <= {kind: meaning.formula for kind, meaning in (MEANINGS | ROTATED).items()}.items()
    assert said
