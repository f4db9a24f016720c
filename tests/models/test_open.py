import msgspec
import pytest

from exact.config import CacheConfig, ModelConfig, ModelsConfig, parse
from exact.errors import UsageError
from exact.models.base import AnswerForm
from exact.models.cache import CachedModel
from exact.models.open import Models, RateLimiters, model_for
from exact.models.providers import Provider, providers, serving
from exact.models.scripted import ScriptedServer, Status

GENERAL, JUDGE = ModelConfig(model="general"), ModelConfig(model="judge")


@pytest.mark.parametrize(
    ("role", "model"),
    [
        ("policy", "general"), ("reflection", "general"), ("value", "v"), ("value.supporter", "v"), ("value.judge", "judge"),
        ("value.judge.2", "judge"), ("policy.arm", "general"), ("embedding", "e"),
    ],
)  # fmt: skip
def test_a_part_of_a_role_has_its_own_model_or_its_roles(role, model):
    models = ModelsConfig(policy=GENERAL, value=ModelConfig(model="v"), embedding=ModelConfig(model="e"), parts={"value.judge": JUDGE})
    assert model_for(models, role).model == model


@pytest.mark.parametrize("path", ["", "shared.sqlite"])
async def test_the_cache_of_answers_is_in_the_run_or_at_its_own_path(tmp_path, path):
    config = CacheConfig(mode="read-write", path=str(tmp_path / path) if path else "")
    (tmp_path / "run").mkdir()
    await Models(ModelsConfig(policy=GENERAL, cache=config), folder=tmp_path / "run").close()
    assert (tmp_path / (path or "run/answers.sqlite")).exists() and (tmp_path / "run" / "answers.sqlite").exists() == (not path)


@pytest.mark.parametrize("role", ["embedding", "valeu", "judge", "valeu.judge"])
def test_a_role_without_a_model_is_a_usage_error(role):
    with pytest.raises(UsageError, match=r"models\.embedding|is no role"):
        model_for(ModelsConfig(policy=GENERAL), role)


def test_the_shipped_providers_read_and_every_one_serves(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com")
    known = providers()
    assert {"openai", "azure", "anthropic", "gemini", "vllm", "sglang", "ollama", "compatible"} <= set(known)
    for name in set(known) - {"compatible"}:
        assert serving(ModelConfig(model="m", provider=name), known).all_endpoints[0].base_url.startswith("http")


def test_an_unknown_provider_is_named_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'gemini'"):
        serving(ModelConfig(model="m", provider="gemni"))


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(UsageError, match="set the environment variable AZURE_OPENAI_ENDPOINT"):
        serving(ModelConfig(model="gpt-4o", provider="azure"))


def test_an_address_without_a_provider_has_none(monkeypatch):
    found = serving(ModelConfig(model="gpt-5", base_url="http://127.0.0.1:1/v1"))
    assert found.name == "compatible" and found.takes("gpt-5").sampling is None


def test_the_longest_beginning_of_a_models_name_counts():
    provider = serving(ModelConfig(model="gpt-5-mini"))
    assert provider.takes("gpt-5-mini").sampling is False and provider.takes("gpt-5-mini").n is True
    assert provider.takes("gpt-4o-mini").images is True and provider.takes("unheard-of").images is None


def test_a_users_file_adds_providers_and_takes_the_place_of_others(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "mine: {endpoints: [{base_url: 'http://a/v1', weight: 2}, {base_url: 'http://b/v1'}]}\nvllm: {base_url: 'http://c/v1'}\n"
    )
    known = providers(str(file))
    assert [place.weight for place in known["mine"].all_endpoints] == [2.0, 1.0]
    assert known["vllm"].base_url == "http://c/v1" and "openai" in known


@pytest.mark.parametrize("text", ["mine: {base_urll: x}", "mine: {kind: soap}", "a: [", "mine: {concurrency: 0}", "- 1"])
def test_a_users_file_is_read_strictly(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"mine\.yaml"):
        providers(str(tmp_path / "mine.yaml"))


async def test_roles_with_the_same_model_share_it_and_those_at_one_endpoint_its_limiter(ask):
    async with ScriptedServer(lambda q, i: q.model, faults=lambda q, times: Status(429, retry_after=0) if not times else None) as server:
        local = {"base_url": server.base_url}
        models = Models(ModelsConfig(policy=ModelConfig(model="a", **local), parts={"value.judge": ModelConfig(model="b", **local)}))
        policy, value, judge = (models.chat(role) for role in ("policy", "value", "value.judge"))
        assert policy is value and judge is not policy
        assert policy.endpoints[0]._limiter is judge.endpoints[0]._limiter
        assert (await judge.complete(ask())).choices[0].text == "b"
        await models.close()


async def test_with_a_cache_models_answer_from_it(tmp_path, ask):
    async with ScriptedServer(lambda q, i: "yes") as server:
        config = ModelsConfig(policy=ModelConfig(model="a", base_url=server.base_url), cache=CacheConfig(mode="read-write"))
        for replayed in (0, 1):
            models = Models(config, folder=tmp_path)
            model = models.chat("policy")
            assert isinstance(model, CachedModel) and (await model.complete(ask())).replayed == replayed
            await models.close()
    assert len(server.bodies) == 1 and (tmp_path / "answers.sqlite").exists()


async def test_answers_as_json_are_cached_apart_from_those_in_lines(tmp_path, ask):
    form = AnswerForm(schema={"type": "object"}, example="{}")
    async with ScriptedServer(lambda q, i: "yes") as server:
        for structured in ("auto", "never", "always", "auto", "always"):
            config = ModelConfig(model="a", base_url=server.base_url, structured=structured)
            models = Models(ModelsConfig(policy=config, cache=CacheConfig(mode="read-write")), folder=tmp_path)
            await models.chat("policy").complete(msgspec.structs.replace(ask(), form=form))
            await models.close()
    assert ["response_format" in body for body in server.bodies] == [False, False, True]


async def test_embeddings_come_in_order_and_are_counted():
    async with ScriptedServer(lambda q, i: "") as server:
        models = Models(ModelsConfig(embedding=ModelConfig(model="e", base_url=server.base_url)))
        found = await models.embedding().embed([f"text {i}" for i in range(600)])
        (again,) = (await models.embedding().embed(["text 599"])).vectors
        await models.close()
    assert len(found.vectors) == 600 and found.vectors[599] == again != found.vectors[0]
    assert found.usage.input_tokens == sum(-(-len(f"text {i}") // 4) for i in range(600))


async def test_embeddings_that_come_allow_more_again_after_a_429():
    async with ScriptedServer(lambda q, i: "") as server:
        models = Models(ModelsConfig(embedding=ModelConfig(model="e", base_url=server.base_url)), limiters=(limiters := RateLimiters()))
        model, (limiter,) = models.embedding(), limiters.made.values()
        for _ in range(6):
            limiter.limited(float("inf"), None)
        assert limiter.allowed == 1
        await model.embed(["text"])
        assert limiter.allowed == 2
        await models.close()


def test_models_opened_separately_may_share_the_rate_limit_of_an_endpoint():
    config, limiters = ModelsConfig(policy=ModelConfig(model="m", base_url="http://127.0.0.1:9/v1")), RateLimiters()
    Models(config, limiters=limiters).chat("policy")
    (limiter,) = limiters.made.values()
    Models(config, limiters=limiters).chat("policy")
    assert list(limiters.made.values()) == [limiter]
    apart = RateLimiters()
    Models(config, limiters=apart).chat("policy")
    assert list(apart.made.values()) != [limiter]


def test_processes_that_ask_one_endpoint_may_each_have_a_share_of_its_limiter():
    slow = Provider(name="slow", base_url="http://127.0.0.1:9/v1", concurrency=10, requests_per_minute=60.0)
    whole, quarter, least = (RateLimiters(share)(slow, slow.all_endpoints[0]) for share in (1.0, 0.25, 0.01))
    assert (whole.allowed, quarter.allowed, least.allowed) == (10, 2, 1)
    assert [each._requests._second for each in (whole, quarter)] == [1.0, 4.0]


@pytest.mark.parametrize("url", ["https://me:sk-12345678@models.test/v1", "https://models.test/v1?key=sk-12345678"])
def test_a_key_in_an_address_is_refused_before_it_gets_into_a_file(url):
    with pytest.raises(UsageError, match="keys come from the environment") as refused:
        parse({"models": {"policy": {"model": "m", "base_url": url}}})
    assert "12345678" not in str(refused.value)
