"""Who may ask what: a real server, asked as a browser, as a stranger and as a rascal would."""

import io
import json
import os
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from tests.review.folders import DIGITS, digits_folder, pictures_folder
from tests.review.serving import Server

from prune4rel.decisions import DecisionLog


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    place = tmp_path_factory.mktemp("review")
    running = Server(digits_folder(place / "cleaned"), place / "cache")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    place = tmp_path_factory.mktemp("pictures")
    folder, files = pictures_folder(place, np.random.default_rng(0))
    running = Server(folder, place / "cache")
    yield running, files
    running.kill()


def first(server, **wanted):
    return server.get("/api/rows", start=0, count=1, filter=json.dumps({"asof": 10**6, **wanted}))["rows"][0]


def test_says_what_there_is(server):
    about = server.get("/api/about")
    assert about["n"] == 1348
    assert about["classes"] == list(DIGITS)
    assert about["kind"] == "pictures"
    assert about["pairs"][0]["count"] >= about["pairs"][-1]["count"] > 0


def test_a_decision_is_on_disk_before_it_is_answered(server):
    row = first(server)
    status, answer = server.post("/api/decide", decisions=[{"row": row["row"], "what": "label", "label": "two"}])
    assert status == 200
    assert answer["states"][str(row["row"])]["label"] == "two"
    log = DecisionLog(server.folder / "decisions.jsonl")
    decision = log.standing[row["row"]]
    assert (decision.label, decision.who, decision.given) == ("two", "ann", DIGITS[row["given"]])
    assert decision.content == f"{row['row']:016x}"
    assert first(server)["row"] != row["row"]
    assert server.post("/api/undo", batch=answer["batch"])[0] == 200
    assert first(server)["row"] == row["row"]


def test_nobody_is_overwritten_unseen(server):
    row = first(server)["row"]
    _, mine = server.post("/api/decide", decisions=[{"row": row, "what": "remove", "seen": None}])
    status, refused = server.post("/api/decide", who="bob", decisions=[{"row": row, "what": "unsure", "seen": None}])
    assert (status, refused["conflict"]) == (409, True)
    assert "was decided by ann: remove, after you had looked" in refused["error"]
    seen = [{"row": row, "what": "unsure", "seen": mine["batch"]}]
    status, changed = server.post("/api/decide", who="bob", decisions=seen)
    assert status == 200
    since = server.get("/api/changes", since=mine["version"])
    assert since["states"][str(row)]["who"] == "bob"
    server.post("/api/undo", batch=changed["batch"])
    server.post("/api/undo", batch=mine["batch"])


def test_filters_list_what_they_say(server):
    def listed(**wanted):
        return server.get("/api/rows", start=0, count=500, filter=json.dumps(wanted))

    pair = server.get("/api/about")["pairs"][0]
    found = listed(given=pair["given"], predicted=pair["predicted"], order="suspicion")
    assert found["total"] == pair["count"] == len(found["rows"])
    scores = [row["score"] for row in found["rows"]]
    assert scores == sorted(scores)
    low = listed(low=0.2, high=0.4)
    assert low["rows"]
    assert all(0.2 <= row["score"] <= 0.4 for row in low["rows"])
    assert all(row["issue"] for row in listed(issues=True)["rows"])
    assert [row["row"] for row in listed(order="row")["rows"]] == list(range(500))
    assert len({row["row"] for row in listed(order="random")["rows"]}) == 500


def test_evidence(server):
    found = server.get("/api/example", row=0)
    assert len(found["neighbours"]) == 10
    assert [each["similarity"] for each in found["neighbours"]] == sorted(
        (each["similarity"] for each in found["neighbours"]), reverse=True
    )
    assert [(each["row"], each["split"], each["kind"]) for each in found["duplicates"]] == [(1, "train", "exact")]
    assert [each["split"] for each in server.get("/api/example", row=2)["duplicates"]] == ["test"]
    assert found["likeliest"][0]["label"] == found["predicted"]


def test_many_at_once_only_after_a_look(server):
    pair = server.get("/api/about")["pairs"][1]
    asked = {"given": pair["given"], "predicted": pair["predicted"], "confidence": 0.5}
    assert server.post("/api/accept", **asked, ticket="")[0] == 400
    _, seen = server.post("/api/look", **asked)
    assert 0 < seen["count"] <= pair["count"]
    assert all(row["confidence"] >= 0.5 for row in seen["sample"])
    one = {"row": seen["sample"][0]["row"], "what": "label", "label": DIGITS[pair["given"]], "seen": None}
    _, kept = server.post("/api/decide", decisions=[one])
    status, refused = server.post("/api/accept", **asked, ticket=seen["ticket"])
    assert status == 400
    assert "look again" in refused["error"]
    _, again = server.post("/api/look", **asked)
    assert again["count"] == seen["count"] - 1
    status, done = server.post("/api/accept", **asked, ticket=again["ticket"])
    assert (status, done["count"], done["counts"]["changed"]) == (200, again["count"], again["count"])
    assert server.post("/api/undo", batch=done["batch"])[1]["counts"]["decided"] == 1
    server.post("/api/undo", batch=kept["batch"])


def test_an_estimate_of_what_is_left(server):
    left = server.get("/api/left", position=100, filter=json.dumps({"order": "suspicion"}))
    for part in ("above", "below", "all"):
        assert left[part]["low"] <= left[part]["expected"] <= left[part]["high"]
    assert left["above"]["expected"] + left["below"]["expected"] == pytest.approx(left["all"]["expected"], abs=0.2)
    assert left["above"]["expected"] > 50


def test_pictures_are_pixels_only(server, pictures):
    status, headers, data = server.ask("GET", "/picture", row=3, size=128)
    assert (status, headers["content-type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(data)).size == (8, 8)
    running, _ = pictures
    status, headers, data = running.ask("GET", "/picture", row=3, size=640)
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(data)).size == (60, 40)
    kept = list((running.home / "prune4rel").rglob("*.jpg"))
    assert data in [each.read_bytes() for each in kept]
    assert running.ask("GET", "/picture", row=3, size=640)[2] == data


def bomb():
    """A PNG of a few bytes that says it is 60,000 pixels wide and high."""
    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "not an image"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "not an image|cannot be decoded"),
        (bomb(), "so many that it could be a decompression bomb"),
        (None, "the file cannot be read"),
    ],
)
def test_broken_pictures_are_told_and_stop_nothing(pictures, content, reason):
    running, files = pictures
    file = files[5]
    before = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    status, _, data = running.ask("GET", "/picture", row=5, size=128)
    file.write_bytes(before)
    assert status == 400
    assert json.loads(data)["error"]
    assert re.search(reason, json.loads(data)["error"])
    assert running.ask("GET", "/picture", row=5, size=128)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1.evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Host": ""},
    ],
)
def test_another_name_is_refused(server, headers):
    sent = {name: value.format(port=server.port) for name, value in headers.items()}
    assert server.ask("GET", "/api/about", headers=sent)[0] in (400, 421)


def test_no_token_no_answer(server):
    paths = ("/api/about", "/api/rows", "/picture", "/", "/nothing")
    assert [server.ask("GET", path, token=False)[0] for path in paths] == [403] * 5
    assert server.ask("GET", "/api/about", token=False, headers={"X-Token": "x"})[0] == 403
    assert server.ask("GET", "/api/about", token=False, headers={"X-Token": "\xff"})[0] == 403
    assert server.ask("POST", "/api/undo", {"who": "eve"}, token=False)[0] == 403
    _, _, page = server.ask("GET", "/", token=False)
    assert b"lacks its token" in page


def test_another_site_cannot_decide(server):
    body = {"who": "eve", "decisions": [{"row": 0, "what": "remove"}]}
    address = f"/api/decide?token={server.token}"  # what a form of another site could send if it knew the address
    assert server.ask("POST", address, body, token=False)[0] == 403
    assert server.ask("POST", "/api/decide", body, headers={"Origin": "http://evil.example"})[0] == 403
    assert server.ask("POST", "/api/decide", body, headers={"Origin": "null"})[0] == 403
    assert server.ask("OPTIONS", "/api/decide")[0] in (403, 405)
    assert server.get("/api/about")["counts"]["decided"] == 0


def test_every_answer_shuts_others_out(server):
    for path in ("/", "/review.js", "/api/about", "/nothing"):
        _, headers, _ = server.ask("GET", path)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/review.js/../../../pyproject.toml",
        "//etc/passwd",
        "/page/index.html",
    ],
)
def test_no_path_leads_out(server, path):
    assert server.ask("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/picture", {"row": "../1", "size": 128}),
        ("/picture", {"row": 10**9, "size": 128}),
        ("/picture", {"row": 1, "size": 100_000}),
        ("/picture", {"row": "-1", "size": 128}),
        ("/api/example", {"row": "9" * 400}),
        ("/api/example", {"row": "٣"}),
        ("/api/rows", {"start": 0, "count": 1, "filter": "{"}),
        ("/api/rows", {"start": 0, "count": 1, "filter": '{"order": "best"}'}),
        ("/api/rows", {"start": 0, "count": 1, "filter": '{"given": "one"}'}),
        ("/api/rows", {"start": 0, "count": 1, "filter": '{"low": null}'}),
        ("/api/rows", {"start": 0, "count": 1, "filter": "[" * 5000}),
    ],
)
def test_rubbish_asked_is_refused_in_words(server, path, query):
    status, _, data = server.ask("GET", path, **query)
    assert status == 400
    assert json.loads(data)["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b"[]",
        {"decisions": "all"},
        {"decisions": []},
        {"decisions": [{"row": "0", "what": "label", "label": "two"}]},
        {"decisions": [{"row": 0, "what": "label", "label": "cow"}]},
        {"decisions": [{"row": 0, "what": "undo"}]},
        {"decisions": [{"row": 99999, "what": "remove"}]},
        {"decisions": [{"row": 0, "what": "remove", "seen": 3}]},
        {"decisions": [{"row": 0, "what": "remove"}], "who": "x" * 1000},
        {"decisions": [{"row": 0, "what": "remove"}], "padding": "x" * 2_000_000},
    ],
)
def test_rubbish_told_is_refused_and_nothing_saved(server, body):
    sent = {"who": "eve", **body} if isinstance(body, dict) else body
    status, _, data = server.ask("POST", "/api/decide", sent)
    assert status == 400
    assert json.loads(data)["error"]
    assert server.get("/api/about")["counts"]["decided"] == 0


def test_read_only_looks_and_does_not_decide(server, tmp_path):
    looking = Server(server.folder, tmp_path, "--read-only")
    try:
        assert looking.get("/api/about")["read_only"]
        status, refused = looking.post("/api/decide", decisions=[{"row": 0, "what": "remove"}])
        assert status == 400
        assert "read-only" in refused["error"]
    finally:
        looking.kill()


def test_another_host_is_warned_of(server, tmp_path):
    open_to_all = Server(server.folder, tmp_path, "--host", "0.0.0.0")  # noqa: S104 - warned of is what is tested
    try:
        assert "warning: listening on 0.0.0.0" in open_to_all.said
        assert open_to_all.ask("GET", "/api/about")[0] == 200
        evil = {"Host": f"evil.example:{open_to_all.port}"}
        assert open_to_all.ask("GET", "/api/about", headers=evil)[0] == 421
    finally:
        open_to_all.kill()


def test_the_token_is_private_and_stays(server):
    (kept,) = (server.home / "prune4rel" / "review").glob("*/token")
    assert kept.stat().st_mode & 0o077 == 0
    assert kept.read_text() == server.token
    os.chmod(kept, 0o644)  # noqa: PTH101 - anybody might have read it
    again = Server(server.folder, server.home)
    again.kill()
    os.chmod(kept, 0o600)  # noqa: PTH101
    assert again.token != server.token
