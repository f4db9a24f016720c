"""The solver, the dataset and the scorer of inspect_ai, with the real package and its mock model."""

from pathlib import Path

from tests.interop.apart import ROOT, run

EXAMPLE = str(ROOT / "examples" / "interop" / "inspect_eval.py")
CALLS = str(Path(__file__).with_name("inspect_calls.py"))


def test_inspect_evaluates_a_benchmark_task_with_its_own_model_as_policy_and_value(executable: str, tmp_path: Path) -> None:
    done = run("inspect", "--inspect", EXAMPLE, path=tmp_path)
    assert done.returncode == 0, done.stderr
    name, _, rest = done.stdout.partition(": ")
    assert name == "miniwob/click-test-2?seed=3" and int(rest.split()[0]) > 2 and rest.endswith("score 1.0\n")


def test_calls_keep_their_settings_and_failures_are_errors_and_never_scores(executable: str, tmp_path: Path) -> None:
    done = run("inspect", "--inspect", CALLS, str(tmp_path / "logs"), path=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("['answer 1', 'answer 2', 'answer 3'] 30 9 3.6e-05 ('grammar is not sent through inspect_ai',)"), lines[0]
    pictures = "data:image/png;base64,cG5n [Picture 2 is the same as picture 1.]"
    assert lines[1:3] == [f"['system', 'user'] {pictures}", "3 None 0.5 9"]
    assert lines[3] == "ModelError: mockllm/model did not answer: quota used up"
    expected = ("names no environment", "did you mean 'miniwob'", "invalid url", "failed without a score")
    for line, says in zip(lines[4:], expected, strict=True):
        assert line.startswith(("None ", "{} ")) and says in line
