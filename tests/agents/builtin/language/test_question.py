import pytest

from exact.agents.builtin.judge.situation import parse_question


def only(instruction):
    [part] = parse_question(instruction).parts
    return part


@pytest.mark.parametrize(
    ("instruction", "sort"),
    [
        ("Who painted the boat?", "person"),
        ("How many boats lie in the harbour?", "number"),
        ("How deep is the basin, in metres?", "number"),
        ("What is the price of a berth?", "number"),
        ("When does the crane close?", "date"),
        ("On which day is the fair? Answer as YYYY-MM-DD.", "date"),
        ("Which boat is the oldest? Answer with its number.", "number"),
        ("Which boat is the oldest?", "any"),
    ],
)
def test_a_question_tells_which_sort_of_answer_it_wants(instruction, sort):
    assert only(instruction).answer_type == sort


def test_the_subject_is_the_content_words_and_names_weigh_more():
    asked = only("Which colour has the boat that Nora bought in 1998?")
    assert asked.words == {"colour", "boat", "nora", "bought", "1998"}
    assert asked.named == {"nora", "1998"}


def test_the_form_of_the_answer_is_not_part_of_the_question():
    asked = parse_question("Which berth is free? Answer with its number, or N/A if there is none.")
    assert (asked.absent_answer, asked.task_text) == ("N/A", "Which berth is free?")
    assert asked.words == {"berth", "free"}


def test_two_things_may_be_asked_at_once():
    assert [part.answer_type for part in parse_question("Who runs the mill, and how many sacks does it grind?").parts] == [
        "person",
        "number",
    ]


@pytest.mark.parametrize("instruction", ["Delete the boat.", "Click on the tab Two.", "Open the page about knots.", ""])
def test_a_sentence_that_asks_nothing_is_no_question(instruction):
    assert parse_question(instruction) is None


def test_a_request_to_state_something_is_a_question_without_its_mark():
    assert only("Tell me the name of the largest boat in the basin.").words == {"largest", "boat", "basin"}
