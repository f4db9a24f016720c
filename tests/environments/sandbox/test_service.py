import pytest

from exact.environments.sandbox.service import Service, declared_services
from exact.errors import UsageError
from exact.task import Task


def task(services: str) -> Task:
    return Task(id="shop/buy", instruction="Buy.", metadata={"services": services})


def test_a_task_declares_its_services_as_json() -> None:
    found = declared_services(task('[{"command": ["serve", "8000"], "ready_url": "http://127.0.0.1:8000/", "stateless": true}]'))
    assert found == (Service(command=("serve", "8000"), ready_url="http://127.0.0.1:8000/", stateless=True),)


def test_a_task_that_says_nothing_declares_none() -> None:
    assert declared_services(Task(id="t", instruction="")) == ()


@pytest.mark.parametrize("services", ["{", '[{"command": ["serve"]}]', '[{"command": ["s"], "ready_url": "u", "readyurl": 1}]'])
def test_an_invalid_service_is_refused_with_the_task(services: str) -> None:
    with pytest.raises(UsageError, match="shop/buy declares invalid services"):
        declared_services(task(services))
