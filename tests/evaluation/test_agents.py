"""Agents that a benchmark knows by name, and those of files."""

from pathlib import Path

import pytest

from exact.errors import UsageError
from exact.evaluation.plan import AGENTS, agent_config
from exact.search.registry import algorithm


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_known_by_name_can_be_made_and_needs_no_model(name: str) -> None:
    config = agent_config(name)
    algorithm(config.search)
    assert config.name == name and config.policy.kind in ("learned", "random") and config.limits.actions == 15


def test_only_the_oracle_is_shown_the_score_and_only_rmcts_remembers() -> None:
    assert [name for name in AGENTS if agent_config(name).value.kind == "oracle"] == ["oracle"]
    assert [name for name in AGENTS if agent_config(name).reflection.kind != "none"] == ["rmcts"]


def test_a_file_without_a_name_is_called_as_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("search: {algorithm: react}\n")
    (tmp_path / "other.yaml").write_text("name: yours\n")
    assert agent_config(str(tmp_path / "mine.yaml")).name == "mine"
    assert agent_config(str(tmp_path / "other.yaml"), ["search.k=3"]).name == "yours"


def test_overrides_reach_agents_known_by_name() -> None:
    assert agent_config("mcts", ["search.iterations=7"]).search.iterations == 7


def test_an_unknown_agent_error_names_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean 'best_of_n'\?"):
        agent_config("best_of_m")
    with pytest.raises(UsageError, match="cannot read configuration"):
        agent_config(str(tmp_path / "nowhere.yaml"))
