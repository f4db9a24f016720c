"""Cases on which our evaluators and the published ones must agree: made of the task files' own references, and of pages and pictures."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]

PAGES = {
    "/order": """<table id=my-orders-table><tbody><tr><td class="col name"><strong>Tea</strong><dl><dt>Size</dt><dd>Big</dd></dl></td>
      <td class="col sku"> B1 </td><td class="col qty">Ordered2</td></tr></tbody><tbody><tr><td class="col name">Cup</td>
      <td class="col sku">B2</td><td class="col qty">Ordered11</td></tr></tbody></table>""",
    "/product": """<main id=maincontent><div class=columns><div><div class=product-info-main><div class=product-info-price>
      <div class="price-box price-final_price"><span><span>$64.50</span></span></div></div></div></div></div></main>
      <a id=tab-label-reviews-title>Reviews 12</a><div class=rating-result title="80%"></div>
      <table id=productDetails_detailBullets_sections1><tbody><tr><th>Brand Name</th><td>Acme</td></tr>
      <tr><th>Manufacturer</th><td>Works</td></tr><tr><th>Weight</th><td>1 kg</td></tr></tbody></table>""",
    "/post": """<div id=main><a class=fg-inherit>asker</a><span class=vote__net-score>3</span>
      <div class=comment data-level=1><div class=comment__main><header><h1><a class=fg-inherit>ann</a><span>
      <time datetime="2023-01-02T00:00:00Z">x</time></span></h1></header>
      <div class=comment__content>first words</div><span class=vote__net-score>1</span></div>
      <div class=comment data-level=2><div class=comment__main><header><h1><a class=fg-inherit>bob</a><span>
      <time datetime="2023-03-02T00:00:00Z">x</time></span></h1></header>
      <div class=comment__content>a reply</div>
      <span class=vote__net-score>1</span></div></div></div>
      <div class=comment data-level=1><div class=comment__main><header><h1><a class=fg-inherit>ann</a><span>
      <time datetime="2023-02-02T00:00:00Z">x</time></span></h1></header>
      <div class=comment__content>later words</div>
      <span class=vote__net-score>1</span></div></div></div>""",
    "/members": """<table><tr><td data-label=Account><span class=gl-avatar-labeled-sublabel>@koush</span></td><td class=col-max-role>
      <span>Guest</span></td></tr><tr><td data-label=Account><span class=gl-avatar-labeled-sublabel>@vinta</span></td>
      <td class=col-max-role><span>Reporter</span></td></tr></table>""",
    "/form": """<title>Form</title><input id=name value="Ann &amp; Bo"><input id=ok type=checkbox checked>
      <select id=size><option>S<option selected>M</select><p class=note>Costs $5.99, not 1,000.</p>
      <ul><li title=a>One<li title=b>Two</ul><div class=desc>30,000 miles</div>
      <button id=more onclick="document.querySelector('.note').textContent='unfolded'">More</button>""",
    "/empty": "<p></p>",
}

LOOKS: tuple[tuple[str, str], ...] = (
    ("/order", "func:shopping_get_order_product_name_list(__page__)"),
    ("/order", "func:shopping_get_order_product_quantity(__page__, 'B2')"),
    ("/order", "func:shopping_get_order_product_quantity(__page__, 'B9 |OR| B1')"),
    ("/order", "func:shopping_get_order_product_option(__page__, 'B1', 'Size')"),
    ("/empty", "func:shopping_get_order_product_quantity(__page__, 'B1')"),
    ("/product", "func:shopping_get_product_attributes(__page__, 'brand name |OR| manufacturer')"),
    ("/product", "func:shopping_get_product_price(__page__)"),
    ("/product", "func:shopping_get_num_reviews(__page__)"),
    ("/empty", "func:shopping_get_product_price(__page__)"),
    ("/post", "func:reddit_get_latest_comment_content_by_username(__page__, 'ann')"),
    ("/post", "func:reddit_get_latest_comment_content_by_username(__page__, 'bob')"),
    ("/post", "func:reddit_get_parent_comment_username_of_latest_comment_by_username(__page__, 'bob')"),
    ("/empty", "func:reddit_get_latest_comment_content_by_username(__page__, 'ann')"),
    ("/members", "func:gitlab_get_project_memeber_role(__page__, 'vinta')"),
    ("/members", "func:gitlab_get_project_memeber_role(__page__, 'nobody')"),
    ("/form", "func:get_query_text(__page__, '.note')"),
    ("/form", "func:get_query_text(__page__, '.absent')"),
    ("/form", "document.querySelector('#name').value"),
    ("/form", "document.querySelector('#size').selectedIndex"),
    ("/form", "document.querySelector('#ok').checked"),
    ("/form", "document.querySelector('#ok').checked.toString()"),
    ("/form", "document.querySelector('.note').outerText"),
    ("/form", "document.querySelector('.absent').outerText"),
    ("/form", "[...document.querySelectorAll('li')].map(each => each.title).join(' ')"),
    ("/form", "lambda:(() => { try { return document.querySelector('.desc').textContent } catch (e) { return '' }})()"),
    ("/form", "lambda:(() => { try { return document.querySelector('.absent').textContent } catch (e) { return '' }})()"),
    ("/form", ""),
    ("/empty", ""),
)
CONTENTS: tuple[dict[str, Any], ...] = (
    {"exact_match": "1"},
    {"exact_match": "Ann & Bo"},
    {"must_include": ["tea"]},
    {"must_include": ["Acme", "works |OR| nothing"]},
    {"must_include": ["words"]},
    {"must_include": ["reporter |OR| guest"]},
    {"must_include": ["5.99", "1,000"]},
    {"must_include": ["a b"]},
    {"must_exclude": ["30,000", "3"]},
    {"must_exclude": ["tea"]},
    {"required_values": [">= 11", "<= 70.5"]},
    {"required_values": ["== 12 |OR| == 2"]},
)


UNFOLD = ("document.querySelector('#more').click()",)
UNFOLDED: tuple[dict[str, Any], ...] = (
    {"must_include": ["unfolded"]},
    {"must_include": ["5.99"]},
    {"exact_match": "unfolded"},
    {"must_include": ["nothing |OR| unfolded"]},
    {"must_include": ["unfolded", "1,000"]},
    {"exact_match": "Costs $5.99, not 1,000."},
)
"""What is looked for where a click unfolds something, and where the click finds nothing."""


def spread(cases: Iterable[Case], kind: Callable[[Case], Hashable], most: int, rng: random.Random) -> list[Case]:
    """Draw a number of cases of each kind; all cases of a kind that has fewer."""
    kinds = dict[Hashable, list[Case]]()
    for case in cases:
        kinds.setdefault(kind(case), []).append(case)
    return [case for found in kinds.values() for case in rng.sample(found, min(most, len(found)))]


def references(name: str, tasks: list[Any]) -> Iterator[dict[str, Any]]:
    """Return the references of real tasks that rules compare answers with. In VisualWebArena they include those for parts of pages."""
    for task in tasks:
        if "string_match" in task["eval"]["eval_types"]:
            yield task["eval"]["reference_answers"]
        for look in task["eval"].get("program_html") or () if name == "visualwebarena" else ():
            if len(look["required_contents"]) == 1 and {"must_exclude", "required_values"} & set(look["required_contents"]):
                yield look["required_contents"]


def numbers(comparisons: list[str], rng: random.Random) -> Iterator[str]:
    """Numbers about those of comparisons, whole ones and off the bound of a strict one: else see FAULTS."""
    for sign, bound in re.findall(r"([<>=]+) *(\d+)", " ".join(comparisons)):
        yield from (f"{int(bound) + by:,}" for by in (-1, 1, 1000))
        yield from (bound, f" {bound} ", f'"{bound}"') if "=" in sign else ("none", f"{bound}th")


def strings(name: str, tasks: list[Any], rng: random.Random) -> Iterator[Case]:
    """Return the references of real tasks with answers that hold all, some or none of them, in several spellings."""
    kinds = ("exact_match", "must_include", "must_exclude", "one_of")
    for answers in references(name, tasks):
        if set(answers) == {"required_values"}:
            for answer in numbers(answers["required_values"], rng):
                yield {
                    "kind": "string_match",
                    "dialect": name,
                    "answer": answer,
                    "eval": {"eval_types": ["string_match"], "reference_answers": answers},
                }
        if not set(answers) <= set(kinds):
            continue
        words = [each for value in answers.values() for each in ([value] if isinstance(value, str) else value)]
        said = " and ".join(each.split(" |OR| ")[0] for each in words)
        plain = (said, said.upper(), f'"{said}"', f"  {said} ", f"It is {said}.", said[1:], f"{said}9", "nothing", f"({said})")
        dressed = (*plain, f"It is {said}. The page says so.", f'The page says "{said}." (E.g. {said}.) Nothing else.')
        for answer in dressed:
            evaluation = {"eval_types": ["string_match"], "reference_answers": answers}
            yield {"kind": "string_match", "dialect": name, "answer": answer, "eval": evaluation}


def addresses(name: str, tasks: list[Any], rng: random.Random) -> Iterator[Case]:
    """Return the reference addresses of real tasks, and addresses near them."""
    for task in tasks:
        wanted = task["eval"].get("reference_url") or ""
        if "url_match" not in task["eval"]["eval_types"]:
            continue
        wanted = re.sub(r"__([A-Z_]+?)__", r"http://127.0.0.1:9001/\1", wanted)
        one = rng.choice(wanted.split(" |OR| "))
        near = (one, one + "/", one + "x", one + ("&" if "?" in one else "?") + "z=1", one[:-2], "http://127.0.0.1:9001/")
        for url in rng.sample(near, 4):
            evaluation = {"eval_types": ["url_match"], "reference_url": wanted}
            if task["eval"].get("url_note"):
                evaluation["url_note"] = task["eval"]["url_note"]
            yield {"kind": "url_match", "dialect": name, "url": url, "eval": evaluation}


def pages(server: str, rng: random.Random) -> Iterator[Case]:
    """Return queries of local pages, by the published helpers and by JavaScript."""
    for path, locator in LOOKS:
        for name in ("webarena", "visualwebarena"):
            own = name == "webarena"
            if own and ("shopping_get_order" in locator or "shopping_get_p" in locator or "num_reviews" in locator or "lambda" in locator):
                continue
            if own and ("query_text" in locator or "comment" in locator):
                continue
            known = [each for each in CONTENTS if not own or set(each) <= {"exact_match", "must_include"}]
            numbers = any(words in locator for words in ("price", "reviews", "quantity"))
            known = [each for each in known if ("required_values" in each) == numbers]
            for wanted, at in zip(rng.sample(known, min(2, len(known))), ("last", server + path), strict=False):
                target = {"url": at, "locator": locator, "required_contents": wanted}
                yield look(name, server + (path if at == "last" else "/empty"), target)
    for name in ("webarena", "visualwebarena"):
        for wanted in UNFOLDED:
            for at, prepare in (("last", UNFOLD), (server + "/form", ("document.querySelector('.absent').click()", *UNFOLD))):
                target = {"url": at, "locator": "document.querySelector('.note').outerText", "required_contents": wanted}
                yield look(name, server + "/form", {**target, "prep_actions": prepare})


def look(name: str, url: str, target: dict[str, Any]) -> Case:
    return {"kind": "program_html", "dialect": name, "url": url, "eval": {"eval_types": ["program_html"], "program_html": [target]}}


def pictures(folder: Path, rng: random.Random) -> Iterator[Case]:
    """Pairs that are equal, alike, scaled, and other."""
    from PIL import Image, ImageDraw, ImageFilter

    def drawn(name: str, size: tuple[int, int], shade: int, blur: float = 0.0) -> str:
        picture = Image.new("RGB", size, (shade, 255 - shade, 90))
        draw = ImageDraw.Draw(picture)
        for _ in range(6):
            x, y = rng.randrange(size[0]), rng.randrange(size[1])
            draw.ellipse((x, y, x + 25, y + 15), fill=(rng.randrange(256), shade, 10))
        path = folder / f"{name}.png"
        (picture.filter(ImageFilter.GaussianBlur(blur)) if blur else picture).save(path)
        return str(path)

    names = [drawn(str(at), (60 + 7 * at, 90 - 5 * at), 40 * (at % 6), at % 3) for at in range(8)]
    for at, one in enumerate(names):
        for other in (one, names[at - 1], names[at - 3]):
            yield {"kind": "ssim", "pictures": [one, other]}


def words(name: str, tasks: list[Any]) -> Iterator[Case]:
    """Texts that are parted into tokens: references, and sentences about them."""
    for task in tasks:
        for value in (task["eval"].get("reference_answers") or {}).values():
            for each in [value] if isinstance(value, str) else value:
                for said in (each, f"It is {each}. I.e. {each}.\n(See {each}.) That is all."):
                    yield {"kind": "tokens", "dialect": name, "text": said.lower()}


def rule(case: Case) -> Hashable:
    """Return the rule of a url_match: its dialect, its comparison, and whether it has alternatives."""
    return case["dialect"], case["eval"].get("url_note"), " |OR| " in case["eval"]["reference_url"]


def all_cases(files: dict[str, Path], server: str, folder: Path) -> list[Case]:
    """Return the same cases each time."""
    rng, found = random.Random(0), list[Case]()
    for name, path in files.items():
        tasks = json.loads(path.read_text())
        found += spread(strings(name, tasks, rng), lambda case: tuple(case["eval"]["reference_answers"]), 120, rng)
        found += spread(addresses(name, tasks, rng), rule, 40, rng)
        found += spread(words(name, tasks), lambda case: case["dialect"], 300, rng)
    return [*found, *pages(server, rng), *pictures(folder, rng)]
