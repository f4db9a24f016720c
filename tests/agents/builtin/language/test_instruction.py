from exact.agents.builtin.language.instruction import parse_instruction
from exact.agents.builtin.language.lexical import words


def kinds(instruction):
    return [(part.kind, part.targets[:1], part.text) for part in parse_instruction(instruction).subgoals if part.kind != "find"]


def test_a_list_of_things_to_select_becomes_one_part_each():
    assert kinds("Select Ann, Bob and Cy and click Submit.") == [
        ("select", ("Ann",), ""),
        ("select", ("Bob",), ""),
        ("select", ("Cy",), ""),
        ("click", ("Submit",), ""),
    ]


def test_the_noun_before_a_quoted_value_names_its_field():
    assert kinds('Enter the username "ann" and the password "x9" into the text fields and press login.') == [
        ("fill", ("username",), "ann"),
        ("fill", ("password",), "x9"),
        ("click", ("login",), ""),
    ]


def test_a_quoted_string_is_never_read_as_grammar():
    assert kinds('Click on the link "press and type".') == [("click", ("press and type",), "")]


def test_a_path_of_menu_items_is_a_sequence():
    assert kinds("Select File>Export>As image") == [("select", ("File",), ""), ("select", ("Export",), ""), ("select", ("As image",), "")]


def test_an_ordinal_and_a_role_are_read_apart_from_the_label():
    (part,) = parse_instruction("Check the 3rd radio button").subgoals
    assert (part.targets, part.ordinal, "radio" in part.roles) == ((), 3, True)


def test_a_means_replaces_what_it_serves():
    assert kinds('Close the dialog box by clicking the "x".') == [("click", ("x",), "")]


def test_only_the_last_click_of_a_form_sends_it():
    *before, last = parse_instruction('Enter "a" into the field and press Cancel').subgoals
    assert last.submits and not any(part.submits for part in before)


def test_one_click_alone_sends_nothing():
    (part,) = parse_instruction('Click the button labeled "OK".').subgoals
    assert not part.submits


def test_a_value_without_quotes_ends_before_its_field():
    assert kinds("Enter 12:30 PM as the time")[0] == ("fill", ("time",), "12:30 PM")


def test_a_quoted_text_to_reply_with_is_written():
    assert kinds('Open the email by Ann and reply "Hi."') == [("click", (), ""), ("fill", ("text message",), "Hi.")]


def test_text_is_filled_in_before_it_is_sent():
    *_, sent = parse_instruction("Find the email from Ann and send it to Bob.").subgoals
    assert kinds("Find the email from Ann and send it to Bob.") == [("fill", ("to",), "Bob"), ("click", (), "")]
    assert sent.submits


def test_opening_what_is_only_described_leads_on():
    described, *_ = parse_instruction('Open the email by Ann and reply "Hi."').subgoals
    named, *_ = parse_instruction('Open "Mail" and click "Send".').subgoals
    assert (described.kind, named.kind) == ("find", "click")


def test_a_genitive_names_what_it_is_made_from():
    assert "Ann" in parse_instruction("Find Ann's email and delete it.").literals
    assert words("Ann\u2019s and Ann's") == ("ann", "and", "ann")
    assert words("it's a 5'10 x") == ("it", "a", "5'10", "x")
