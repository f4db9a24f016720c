from exact.agents.builtin.judge.situation import fits_type, parse_question, rank_answers
from exact.agents.builtin.page import page as pages
from tests.agents.builtin.pages import page

CREW = page(
    ("heading", "Crew of the harbour"),
    ("table", ""),
    ("row", "", 1),
    ("columnheader", "Name", 2),
    ("columnheader", "Berth", 2),
    ("columnheader", "Phone", 2),
    ("row", "", 1),
    ("cell", "nora", 2),
    ("cell", "B7", 2),
    ("cell", "3391", 2),
    ("row", "", 1),
    ("cell", "piet", 2),
    ("cell", "C2", 2),
    ("cell", "3302", 2),
)
NOTE = page(
    ("heading", "The crane"),
    ("StaticText", "It was built by Ole Lund. It lifts 12 tons and rests on Sundays. A lift costs 40 euros."),
    ("heading", "The slipway"),
    ("StaticText", "It is open from May. Its rails are 90 metres long."),
)
SHEET = page(
    ("heading", "Boat 14"),
    ("row", ""),
    ("rowheader", "Built by:", 1),
    ("cell", "ole", 1),
    ("rowheader", "Owned by:", 1),
    ("cell", "nora", 1),
)


def best(instruction, observation, *met):
    found = rank_answers(parse_question(instruction), pages.read_page(observation, instruction), frozenset(met))
    return [each.text for each in found]


def test_a_cell_is_found_by_its_row_and_its_column():
    assert best("What is the phone number of piet?", CREW)[0] == "3302"
    assert "B7" in best("In which berth does nora live?", CREW)[0]


def test_a_cell_is_found_by_the_header_before_it():
    assert best("Who built boat 14?", SHEET)[0] == "ole"
    assert best("Who owned boat 14?", SHEET)[0] == "nora"


def test_a_number_is_found_in_the_sentence_that_the_question_is_about():
    assert "40" in best("How much does a lift of the crane cost?", NOTE)[0]
    assert "90" in best("How long are the rails of the slipway?", NOTE)[0]


def test_answers_use_text_of_pages_opened_on_the_way():
    alone = page(("StaticText", "It closes at 18:30."))
    asked = parse_question("When does the kiosk close?")
    far, near = (rank_answers(asked, pages.read_page(alone, ""), met)[0].score for met in (frozenset(), frozenset({"kiosk"})))
    assert near > far


def test_two_questions_are_answered_in_one():
    text = best("Who built the crane, and how many tons does it lift?", NOTE)[0]
    assert "Ole Lund" in text and "12" in text


def test_a_page_that_says_nothing_of_it_gives_no_good_answer():
    asked = parse_question("How many whales were seen in 1931?")
    found = rank_answers(asked, pages.read_page(CREW, ""), frozenset())
    assert all(each.score < 0.2 for each in found)


def test_the_question_itself_is_no_answer():
    seen = page(("heading", "Who built the crane"), ("StaticText", "Built by: Ole"))
    assert best("Who built the crane?", seen)[0] == "Ole"


def test_answer_types_are_recognised_by_digits_and_dates():
    assert fits_type("number", "12 tons") and not fits_type("number", "2024-01-02") and not fits_type("number", "twelve")
    assert fits_type("date", "2024-01-02") and fits_type("date", "1 May 2024") and not fits_type("date", "May")
    assert fits_type("person", "Ole Lund") and not fits_type("person", "3302")
