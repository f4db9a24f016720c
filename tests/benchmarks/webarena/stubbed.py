"""Cases whose models, pictures and shop are stubs, the same for our evaluators and the published ones: scripted judges, a scripted look at
pictures, pages of ours, and a stub of the shop's REST interface."""

from __future__ import annotations

import base64
import io
import json
import random
import re
from collections.abc import Iterator
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.benchmarks.webarena.judges import VISION
from exact.models.base import ChatAnswer, ChatRequest, Choice, Image, Text, Usage
from tests.benchmarks.webarena.cases import PAGES, Case, look

VERDICTS = (
    *("correct", "Correct.", "CORRECT", "`correct`", "Another name of the town.\nverdict: correct", "**Verdict:** Correct"),
    *("incorrect", "Incorrect.", "partially correct", "Partially Correct", "It lacks the year.\nverdict: partially correct"),
    *("Another town.\nVerdict: incorrect", "**Verdict:** Incorrect"),
)
REASONS = (
    *("same", "Same.", "SAME", '"same"', "Both say that it is sold out.\nverdict: same"),
    *("different", "Different.", "Only one names the stock.\nVerdict: different"),
)


def drawn(shade: int, kind: str = "png") -> bytes:
    from PIL import Image as Pictures
    from PIL import ImageDraw

    made, buffer = Pictures.new("RGB", (60 + shade // 4, 50), (shade, 90, 90)), io.BytesIO()
    rng = random.Random(shade)
    for _ in range(5):
        x, y = rng.randrange(5, 40), rng.randrange(5, 30)
        ImageDraw.Draw(made).ellipse((x, y, x + 25, y + 15), fill=(10, 255 - shade, shade))
    made.save(buffer, kind, **({"lossless": True} if kind == "webp" else {}))
    return buffer.getvalue()


GALLERY = """<main><div class=shown><img src=/picture/200.png alt=Cup><img src={server}/picture/20.png></div>
  <div class=shown><p><img src=picture/120.png></div><img class=alone src=//{host}/picture/60.png>
  <div class=mixed><img src=/gone.png><img><img src=/picture/60.png></div><div class=broken><img src=/gone.png></div>
  <div class=nested><div class=nested><img src=/picture/20.png></div></div><div class=bare>No picture</div>
  <div class=other><img src=/picture/160.gif><img src=/picture/90.webp></div></main>"""
_COMMENT = """<div class=comment data-level={level}><div class=comment__main><header><h1><a class=fg-inherit>ann</a><span>
  <time datetime="2023-0{level}-02T00:00:00Z">x</time></span></h1></header><div class=comment__content>Yes</div>
  <span class=vote__net-score>1</span>{below}</div></div>"""
_THREAD = _COMMENT.format(level=1, below=_COMMENT.format(level=2, below=""))
STUBBED = {
    "/sales/order/view/order_id/190/": """<h1>Order # 000000190</h1><table id=my-orders-table><tbody><tr><td class="col name">
      <strong>Tea</strong></td><td class="col sku">B1</td><td class="col qty">Ordered2</td></tr></tbody></table>
      <div class=shown><img src=/picture/200.png></div>""",
    "/f/tea/12/": "<h1>A post on tea</h1><div class=submission__image><img src=/picture/20.png></div>",
    "/f/tea/12/-/comment/3": "<h1>A comment</h1>",
    "/f/tea": "<h1>All on tea</h1>",
    "/inline": f"<img src='data:image/png;base64,{base64.b64encode(drawn(200)).decode()}' alt=Cup>",
    "/private": "<script>document.cookie = 'who=ann; path=/'</script><img src=/private.png alt=Cup>",
    "/down": "<img src=/down.png alt=Cup>",
    "/dear": PAGES["/product"].replace("$64.50", "$1,064.50"),
    "/shipped": PAGES["/order"].replace("Ordered2", "<p>Ordered2</p><p>Shipped2</p>"),
    "/thread": f"<div id=main><a class=fg-inherit>asker</a><i class=vote__net-score>1</i><i class=comment__content>Tea?</i>{_THREAD}</div>",
    "/green-tea.html": "<h1>Green tea</h1>",
    "/rated": "<div class=rating-result title='80%'></div><h2 class=Name>Green TEA</h2>",
}
ORDERS = {"000000007": "2022-01-05 10:00:00", "000000190": "2023-04-01 09:00:00", "000000012": "2023-03-30 23:00:00"}
REVIEWS: dict[str, list[dict[str, Any]]] = {
    "B1": [
        {"nickname": "Old", "ratings": [{"rating_name": "Rating", "percent": 20}], "detail": "Bad.", "title": "No"},
        {"nickname": "Ann &amp; Bo", "ratings": [{"rating_name": "Rating", "percent": 80}], "detail": "Fine, 5 cups.", "title": "Good"},
    ],
    "B2": [{"nickname": "Solo", "ratings": [{"rating_name": "Rating", "percent": 100}], "detail": "", "title": "."}],
    "B3": [],
    "B4": [
        {"nickname": "Old", "ratings": [], "detail": "Bad.", "title": "No"},
        {"nickname": "New", "ratings": [{"rating_name": "Rating", "percent": 60}], "detail": "So so.", "title": "Well"},
    ],
}


def serve(server: HTTPServer) -> str:
    """Has a server give the pages, the pictures and the stub of the shop's interface; its address."""
    address = f"http://127.0.0.1:{server.port}"
    gallery = GALLERY.format(server=address, host=f"127.0.0.1:{server.port}")
    for path, body in {**PAGES, **STUBBED, "/gallery": gallery}.items():
        server.expect_request(path).respond_with_data(f"<!doctype html>{body}", content_type="text/html")
    server.expect_request(re.compile(r"/picture/\d+\.\w+")).respond_with_handler(_picture)
    server.expect_request("/gone.png").respond_with_data("no such picture", status=404)
    server.expect_request("/down.png").respond_with_data("too busy", status=503)
    server.expect_request("/private.png").respond_with_handler(_private)
    server.expect_request("/rest/default/V1/integration/admin/token", method="POST").respond_with_handler(_token)
    server.expect_request(re.compile(r"/rest/V1/.*")).respond_with_handler(_shop)
    return address


def _picture(request: Request) -> Response:
    """`/picture/200.png`: its first pixel's red is 200."""
    name, kind = request.path.split("/")[-1].split(".")
    return Response(drawn(int(name), kind), content_type=f"image/{kind}")


def _private(request: Request) -> Response:
    return Response(drawn(200), content_type="image/png") if "who" in request.cookies else Response("not yours", 403)


def _token(request: Request) -> Response:
    known = request.get_json() == {"username": "admin", "password": "admin1234"}
    return Response(json.dumps("t0ken" if known else {"message": "no"}), 200 if known else 401, content_type="application/json")


def _shop(request: Request) -> Response:
    """Orders sorted and counted as asked, and reviews in the order they were written in."""
    steps, asked = request.path.split("/")[3:], request.args
    if request.headers.get("Authorization") != "Bearer t0ken":
        return Response("{}", 401, content_type="application/json")
    if steps == ["orders"]:
        by = "searchCriteria[sortOrders][0]"
        latest = asked.get(f"{by}[field]") == "created_at" and asked.get(f"{by}[direction]") == "DESC"
        names = sorted(ORDERS, key=lambda each: ORDERS[each], reverse=True) if latest else list(ORDERS)
        found: Any = {"items": [{"increment_id": each} for each in names[: int(asked.get("searchCriteria[pageSize]", 20))]]}
    elif steps[0::2] == ["products", "reviews"]:
        found = REVIEWS.get(steps[1])
    else:
        found = {"custom_attributes": [{"attribute_code": "url_key", "value": "green-tea"}]} if steps == ["products", "B1"] else None
    return Response(json.dumps(found), 404 if found is None else 200, content_type="application/json")


class Stub:
    """Answers as the published evaluators' stubs do (`scripted` in peer.py), and notes what it is asked."""

    name, price = "stub/model", None

    def __init__(self, case: Case) -> None:
        self._case, self.asked = case, list[list[str]]()

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.asked.append(_seen(request) if request.role == VISION else _told(request))
        if request.role == VISION:
            said = _saw(self._case, *self.asked[-1])
        else:
            said = self._case["says"][min(len(self.asked), len(self._case["says"])) - 1]
        return ChatAnswer(choices=(Choice(text=said, finish="stop"),), usage=Usage(), model="stub", raw="")

    async def close(self) -> None:
        """Close nothing."""


def _saw(case: Case, shade: str, question: str) -> str:
    return str(case["sees"][question].get(shade, "nothing"))


def _seen(request: ChatRequest) -> list[str]:
    from PIL import Image as Pictures

    (picture, question) = request.messages[-1].parts
    assert isinstance(picture, Image) and isinstance(question, Text)
    red, *_ = Pictures.open(io.BytesIO(picture.data)).convert("RGB").getpixel((0, 0))  # type: ignore[misc]
    return [str(red), question.text]


def _told(request: ChatRequest) -> list[str]:
    """Question, reference and answer that our judge is given."""
    said = "".join(part.text for part in request.messages[1].parts if isinstance(part, Text))
    return re.findall(r"⟦[a-z ]+ \w{8}⟧\n(.*?)\n⟦/", said, re.S)


_THEIRS = (
    r"question: (.*)\nreference answer: (.*)\nall the string .*\nstudent answer: (.*)\nConclude the judgement",
    r"task: (.*)\nactual unachievable reason: (.*)\nreported unachievable reason: (.*)\nThe task described above",
)


def told(asked: str | list[str]) -> list[str]:
    """Question, reference and answer that a published judge is given, or picture and question."""
    if not isinstance(asked, str):
        return [asked[0], asked[1].removeprefix("Q: ").removesuffix(" A:")]
    (found,) = (match.groups() for match in (re.search(each, asked, re.S) for each in _THEIRS) if match)
    return list(found)


def answered(dialect: str, answer: str, references: dict[str, Any], says: list[str], intent: str = "Say it.", note: str = "") -> Case:
    evaluation = {"eval_types": ["string_match"], "reference_answers": references, "string_note": note}
    return {"kind": "string_match", "dialect": dialect, "answer": answer, "intent": intent, "says": says, "eval": evaluation}


def queried(url: str, *asks: dict[str, Any], sees: dict[str, dict[str, str]] | None = None) -> Case:
    evaluation = {"eval_types": ["page_image_query"], "page_image_query": asks}
    return {"kind": "page_image_query", "dialect": "visualwebarena", "url": url, "sees": sees or {}, "eval": evaluation}


def judged(tasks: list[Any], rng: random.Random) -> Iterator[Case]:
    """Answers to real tasks whose references a judge compares, and reasons for real tasks that cannot be done."""
    known = [task for task in tasks if "fuzzy_match" in (task["eval"].get("reference_answers") or {})]
    listed = [task for task in known if isinstance(task["eval"]["reference_answers"]["fuzzy_match"], list)]
    for at, task in enumerate(rng.sample(listed, 2 * len(VERDICTS))):
        wanted = task["eval"]["reference_answers"]
        said = " and ".join(wanted["fuzzy_match"])
        answer = (f"It is {said}", f"'{said}'", f" {said.upper()} ", f'"So {said}')[at % 4]
        says = [VERDICTS[(at + each) % len(VERDICTS)] for each in range(len(wanted["fuzzy_match"]))]
        yield answered(("webarena", "visualwebarena")[at % 2], answer, wanted, says, task["intent"])
    reasoned = [task for task in known if task["eval"]["reference_answers"]["fuzzy_match"] == "N/A"]
    for at, task in enumerate(rng.sample(reasoned, 2 * len(REASONS))):
        answer = ("It cannot be done: SOLD out.", "'None is left'", " n/a: gone ", "N/A")[at % 4]
        note, says = task["eval"]["string_note"], [REASONS[at // 2]]
        yield answered(("webarena", "visualwebarena")[at % 2], answer, {"fuzzy_match": "N/A"}, says, task["intent"], note)


def parts(server: str) -> Iterator[Case]:
    """Parts of pages that a judge reads."""
    locators = (
        "func:reddit_get_latest_comment_content_by_username(__page__, 'ann')",
        "document.querySelector('.comment__content').outerText",
    )
    for at, says in enumerate((*VERDICTS[:2], "verdict: incorrect", "Partially correct.")):
        target = {"url": "last", "locator": locators[at % 2], "required_contents": {"fuzzy_match": "What was said first, or later"}}
        yield {**look("visualwebarena", server + "/post", target), "says": [says]}


def pictures(server: str) -> Iterator[Case]:
    """Questions about the pictures of a page, and pictures that are to be among them."""

    def query(sees: dict[str, dict[str, str]], place: str = ".shown", url: str = "last", start: str = "/gallery", **asks: Any) -> Case:
        return queried(server + start, {"eval_image_url": url, "eval_image_class": place, **asks}, sees=sees)

    cup, colour = {"question": "Is it a cup?", "answer": "yes"}, {"question": "Which colour?", "answer": "Dark Green"}
    sees = {"Is it a cup?": {"200": "Yes.", "20": "no", "60": "YES, it is"}, "Which colour?": {"120": "a dark green one", "20": "red"}}
    for place in (".shown", ".alone", ".mixed", ".broken", ".nested", ".bare", ".absent", ""):
        yield query(sees, place, eval_vqa=[cup])
    yield query(sees, ".shown p", eval_vqa=[colour])
    yield query(sees, ".mixed", eval_vqa=[colour])
    yield query(sees, eval_vqa=[cup, colour])
    yield query(sees, ".mixed", eval_vqa=[cup, colour])
    yield query({"Is it a cup?": {"200": "yes"}}, eval_vqa=[{**cup, "answer": "yes |OR| maybe"}])
    yield query(sees, eval_vqa=[cup], eval_fuzzy_image_match=f"{server}/picture/20.png")
    yield query(sees, ".nested", eval_vqa=[cup], eval_fuzzy_image_match=f"{server}/picture/20.png")
    yield query(sees, url=server + "/gallery", start="/empty", eval_vqa=[cup])
    yield query(sees, url="func:shopping_get_latest_order_url()", start="/empty", eval_vqa=[cup])
    yield query(sees, ".submission__image", "func:reddit_get_post_url('__last_url__')", "/f/tea/12/-/comment/3", eval_vqa=[cup])
    likes = {".shown": "200.png", ".mixed": "60.png", ".broken": "60.png", ".other": "160.gif", ".absent": "20.png", "": "120.png"}
    for place, like in likes.items():
        yield query({}, place, eval_fuzzy_image_match=f"{server}/picture/{like}")
    for place in (".shown", ".other"):
        yield query({}, place, eval_fuzzy_image_match=f"{server}/picture/60.png")
        yield query({}, place, eval_fuzzy_image_match=f"{server}/picture/60.png |OR| {server}/picture/20.png")
    yield query({}, ssim_threshold=-1.0, eval_fuzzy_image_match=f"{server}/picture/90.png")
    yield query({}, ssim_threshold=1.0, eval_fuzzy_image_match=f"{server}/picture/200.png")


def getters(server: str) -> Iterator[Case]:
    """Return cases for the shop's interface, and for the getters of pages that test_parity.py lacks."""
    order, post = "func:shopping_get_latest_order_url()", "func:reddit_get_post_url('__last_url__')"
    head = "document.querySelector('h1').outerText"
    review = "func:shopping_get_sku_latest_review_{}('{}')"
    both = (
        *(("/empty", order, head, wanted) for wanted in ("Order # 000000190", "Order # 000000012")),
        *(("/f/tea/12/-/comment/3", post, head, wanted) for wanted in ("A post on tea", "A comment")),
        ("/f/tea", post, head, "All on tea"),
        *(("/empty", "last", review.format("author", sku), wanted) for sku, wanted in (("B1", "Ann & Bo"), ("B2", "solo"), ("B3", ""))),
        *(("/empty", "last", review.format("author", sku), "Old") for sku in ("B1", "B3")),
        *(("/empty", "last", review.format("rating", sku), wanted) for sku, wanted in (("B1", "80"), ("B1", "20"), ("B3", ""))),
    )
    other = (
        *(("/empty", "last", review.format("text", sku), wanted) for sku, wanted in (("B1", "Fine, 5 cups."), ("B2", ""), ("B1", "Bad."))),
        *(
            ("/rated", "last", f"func:get_query_text_lowercase(__page__, '{at}')", wanted)
            for at, wanted in ((".Name", "green tea"), (".x", ""))
        ),
    )
    for name, found in (("webarena", both), ("visualwebarena", (*both, *other))):
        for path, url, locator, wanted in found:
            yield look(name, server + path, {"url": url, "locator": locator, "required_contents": {"exact_match": wanted}})
    numbers = (
        ("/empty", order, "func:shopping_get_order_product_quantity(__page__, 'B1')", "== 2"),
        ("/empty", order, "func:shopping_get_order_product_quantity(__page__, 'B1')", ">= 3"),
        *(("/rated", "last", "func:shopping_get_rating_as_percentage(__page__)", wanted) for wanted in ("== 80", "<= 50")),
        *(("/empty", "last", review.format("rating", "B1"), wanted) for wanted in (">= 80", "<= 79")),
    )
    for path, url, locator, wanted in numbers:
        target = {"url": url, "locator": locator, "required_contents": {"required_values": [wanted]}}
        yield look("visualwebarena", server + path, target)


def stubbed_cases(tasks: list[Any], server: str) -> list[Case]:
    """Return the same cases of all tasks of both benchmarks each time."""
    return [*judged(tasks, random.Random(0)), *parts(server), *pictures(server), *getters(server)]
