"""jumok look: a page in one file, a ranking of heads, and errors in words."""

import json
import socket
import sys
from pathlib import Path

import pytest
from commands import Jumok

FROZEN = Path(__file__).parent.parent / "frozen" / "format-1" / "model"
TEXT = "The red horse likes the horse."


def test_a_page_is_saved_to_one_file(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("look", "-m", FROZEN, TEXT, "--save", tmp_path / "page.html")
    assert ended.code == 0
    assert "Saved" in ended.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    start = json.loads(page.split('id="start">')[1].split("</script>")[0])
    assert start["traces"][0]["trace"]["text"] == TEXT


def test_heads_are_ranked_on_a_file(jumok: Jumok, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(
        f"{TEXT}\t빨간 말 말 좋아해요.\nThe big cat sees the dog.\t큰 고양이 개 봐요.\n", encoding="utf-8"
    )
    lines = jumok("look", "-m", FROZEN, "--rank-heads", tmp_path / "pairs.tsv").out.splitlines()
    values = [float(line.split()[2]) for line in lines[1:]]
    assert len(values) == 6
    assert values == sorted(values)
    ended = jumok("look", "-m", FROZEN, "--rank-heads", tmp_path / "pairs.tsv", "--json")
    heads = [json.loads(line) for line in ended.out.splitlines()]
    assert {(head["attention"], head["head"]) for head in heads} == {
        (name, head) for name in ("encoder.0.self", "decoder.0.self", "decoder.0.cross") for head in (0, 1)
    }
    assert all(isinstance(head["score"], float) for head in heads)


def test_the_file_of_a_ranking_is_read_as_elsewhere(jumok: Jumok, tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(f"1;{TEXT};x;빨간 말 말 좋아해요.\n2;The big cat.;y;큰 고양이.\n", encoding="utf-16")
    ranking = ["look", "-m", FROZEN, "--json", "--rank-heads", table]
    assert "Choose by names or numbers, for example: --columns" in jumok(*ranking).err
    ended = jumok(*ranking, "--columns", "2", "4", "--separator", ";", "--encoding", "utf-16")
    assert (ended.code, len(ended.out.splitlines())) == (0, 6)
    assert 'source = column 2, target = column 4; not used: column 1, column 3; no header; separator ";"' in ended.err
    assert "--sheet has no effect" in jumok(*ranking, "--sheet", "1").err
    assert "--encoding says how the FILE of --rank-heads is read" in jumok(*ranking[:3], "--encoding", "cp1252").err


def test_a_port_that_is_taken_is_named(jumok: Jumok) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = jumok("look", "-m", FROZEN, TEXT, "--port", str(port), "--no-open")
    assert ended.code == 2
    assert f"Port {port} cannot be used" in ended.err
    assert "--port" in ended.err


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_sentence_is_an_error(jumok: Jumok, tmp_path: Path, text: str) -> None:
    ended = jumok("look", "-m", FROZEN, text, "--save", tmp_path / "page.html")
    assert ended.code == 2
    assert "no tokens" in ended.err
    assert not (tmp_path / "page.html").exists()


def test_without_a_sentence_and_samples_one_is_asked_for(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("look", "-m", FROZEN, "--save", tmp_path / "page.html")
    assert ended.code == 2
    assert "Give a sentence" in ended.err


def test_without_torch_the_extra_is_named(jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("jumok.lens", "jumok.engines.torch"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    ended = jumok("look", "-m", FROZEN, TEXT, "--save", tmp_path / "page.html")
    assert ended.code == 2
    assert 'needs torch, which is not installed. Install it with: pip install "jumok[train]"' in ended.err


def test_a_text_that_is_too_long_is_an_error_in_words(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("look", "-m", FROZEN, "red " * 1_500, "--save", tmp_path / "page.html")
    assert ended.code == 2
    assert "The text has 6,000 characters; at most 4,000 can be looked at. Take a part of it." in ended.err
    assert not (tmp_path / "page.html").exists()


def test_of_several_sentences_one_is_saved_and_the_others_are_counted(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("look", "-m", FROZEN, "red " * 300, "--save", tmp_path / "page.html")
    assert ended.code == 0
    assert "because the page holds one sentence: 1 other sentence." in ended.err


def test_a_text_without_a_known_letter_is_shown_and_said(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("look", "-m", FROZEN, "தமிழ்", "--save", tmp_path / "page.html")
    assert ended.code == 0
    assert "knows no letter of this text" in ended.err
    ended = jumok("look", "-m", FROZEN, TEXT, "--save", tmp_path / "page.html")
    assert "knows no letter" not in ended.err
