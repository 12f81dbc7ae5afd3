"""Whatever a browser sends to the page of a review: an answer, or one line on what was wrong with the question."""

import json
from random import Random

from tests.fuzz.samples import make_cleaned
from tests.review.serving import Server

TIMES = 400
VALUES = [
    None, True, -1, 0, 1, 5, 10**9, 2**64, 1e308, float("nan"), "", "x", "a" * 200, "label", "remove", "unsure", "a",
    "b", [], {}, [1], {"a": 1}, "\x00", "worth", "suspicion", "random", "row", "any", "undecided", "decided",
]  # fmt: skip
NUMBERS = ["0", "1", "5", "-1", "9" * 17, "x", "", "1e3"]
FILTER = ["order", "asof", "given", "predicted", "low", "high", "state", "issues", "source"]
WORDS = ["given", "predicted", "confidence", "decisions", "batch", "ticket"]


def some(random, names):
    return {name: random.choice(VALUES) for name in random.sample(names, random.randrange(len(names) + 1))}


def question(random):
    """Return one that nobody should ask: method, path, body, and what stands in the address."""
    if random.random() < 0.5:
        asked = {name: random.choice(NUMBERS) for name in ("start", "count", "row", "since", "position", "size")}
        asked["filter"] = json.dumps(some(random, FILTER))
        return "GET", random.choice(["about", "rows", "example", "changes", "left"]), None, asked
    told = {"who": random.choice(["ann", "ann", "", 5, None, "x" * 100]), **some(random, WORDS)}
    if random.random() < 0.5:
        told["decisions"] = [some(random, ["row", "what", "label", "seen"]) for _ in range(random.randrange(3))]
    if random.random() < 0.4:
        told |= {"given": 0, "predicted": 1}
    return "POST", random.choice(["look", "decide", "undo", "accept"]), told, {}


def test_no_question_ends_in_a_traceback(tmp_path):
    make_cleaned(tmp_path)
    server = Server(tmp_path / "cleaned", tmp_path / "cache")
    random, seen = Random(0), set()  # noqa: S311 - no secret
    try:
        for _ in range(TIMES):
            method, name, body, asked = question(random)
            status, _, content = server.ask(method, f"/api/{name}", body, **asked)
            assert status in (200, 400, 409), (method, name, body, asked, status)
            assert status == 200 or json.loads(content)["error"].isprintable()
            seen.add(status)
    finally:
        server.kill()
    assert {200, 400} <= seen
