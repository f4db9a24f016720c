import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.models.reasoning import final_answer

ACTION = "Action: click [3]"


@pytest.mark.parametrize(
    "reasoning",
    [
        "<think>Action: click [4]?</think>",
        "<thinking>\nAction: click [4]\n</thinking>",
        "<THOUGHT>Action: click [4]</THOUGHT>",
        '<reasoning effort="high">Action: click [4]</reasoning>',
        "<scratchpad>\n<think>Action: click [4]</think>\n</scratchpad>",
        "[THINK]Action: click [4][/THINK]",
        "◁think▷Action: click [4]◁/think▷",
        "<seed:think>Action: click [4]</seed:think>",
        "<|begin_of_thought|>Action: click [4]<|end_of_thought|>",
        "Action: click [4]</think>",
        "Okay. <think>Action: click [4]</think>",
        'It needs a 5" disk.</think>',
        "<think>one</think>\n<think>Action: click [4]</think>",
        "<|channel|>analysis<|message|>Action: click [4]<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_reasoning_before_the_answer_is_set_aside(reasoning):
    assert final_answer(f"{reasoning}\n{ACTION}").strip() == ACTION


@pytest.mark.parametrize("text", ["Sure.\n<analysis>no: click [4]</analysis>\n" + ACTION, f"<think>a</think><answer>{ACTION}</answer>"])
def test_reasoning_and_wrappers_around_the_answer_are_set_aside(text):
    assert final_answer(text).splitlines()[-1] == ACTION


@pytest.mark.parametrize("text", ["<think>Action: click [4]", "[THINK]\nAction: click [4]", "<|channel|>analysis<|message|>" + ACTION])
def test_reasoning_that_was_cut_off_leaves_no_answer(text):
    assert final_answer(text).strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        'Action: fill [3] "write </think> to end"',
        "Action: fill [3] 'write </think> to end'",
        "Action: fill [3] “<think>”",
        'The page says "<thinking>".\nAction: fill [3] "[/THINK]"',
        "x < think > y",
    ],
)
def test_a_tag_inside_quoted_text_is_text(text):
    assert final_answer(text) == text


@given(st.text(alphabet=st.characters(exclude_characters="<>[]◁▷|")))
def test_a_text_without_tags_is_the_answer(text):
    assert final_answer(text) == text


@given(st.text(alphabet='<think>/ \n"ab[]|'))
def test_any_text_is_read(text):
    assert isinstance(final_answer(text), str)
