"""A program that attempts a toy task with a scripted model: HOW FOLDER. It prints the status of the attempt."""

import asyncio
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import msgspec

from exact.config import parse
from exact.environments.toy.factory import Faults, ToyFactory
from exact.environments.toy.known import maze, toy_task
from exact.models.script import Question
from exact.models.scripted import ScriptedServer
from exact.runs.runner import Runner, create, reopen


class Broken:
    """Sys.meta_path finder that hides OpenTelemetry."""

    def find_spec(self, name: str, *args: object) -> None:
        if name.startswith("opentelemetry"):
            raise ImportError(name)


def answer(question: Question, sample: int) -> str:
    links = re.findall(r'\] link "([^"]+)"', question.messages[-1][1])
    return f'because of the crumbs\nAction: go "{links[sample % len(links)]}"'


async def attempt(how: str, folder: Path) -> str:
    async with ScriptedServer(answer) as server:
        config = parse(
            {
                "name": "traced",
                "search": {"iterations": 4, "k": 2},
                "policy": {"kind": "llm", "samples": 2},
                "value": {"kind": "constant"},
                "reflection": {"kind": "none"},
                "models": {"policy": {"model": "scripted", "base_url": server.base_url}},
                "limits": {"actions": 3},
            }
        )
        task = msgspec.structs.replace(toy_task(maze()), instruction="THE GOAL of Hansel")
        create(folder, (task,), config)
        opened, config = reopen(folder)
        environments = ToyFactory(maze(), faults=Faults(fail_every=1 if how == "failed" else None))
        runner = Runner(folder=opened, config=config, open_environments=lambda task: nullcontext(environments))
        return (await runner.run())[0].status


def main(how: str, folder: Path) -> None:
    if how == "missing":
        sys.meta_path.insert(0, Broken())  # type: ignore[arg-type]
    if how == "own":
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        kept, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(kept))
        trace.set_tracer_provider(provider)
    status = asyncio.run(attempt(how, folder))
    if how == "own":
        sys.stdout.writelines(f"own: {span.name}\n" for span in kept.get_finished_spans())
    if not any(name.startswith("opentelemetry") for name in sys.modules):
        sys.stdout.write("OpenTelemetry was not imported\n")
    sys.stdout.write(f"{status}\n")


main(sys.argv[1], Path(sys.argv[2]))
