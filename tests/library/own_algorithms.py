"""Algorithms, memories and models of a user's own, each with one fault."""

import exact


class Mine(exact.MCTS):
    pass


class Dice(Mine):
    """An algorithm that forgets the seed."""

    draws = iter(range(100))

    def ask(self, tree):
        return exact.Done(reason=f"after {next(self.draws)} draws")


def dice(config):
    return Dice(k=config.k, iterations=config.iterations, depth=config.depth)


def boom(*_, **__):
    raise ValueError("boom")


def nothing(*_, **__):
    return None


async def awaitable(*_, **__):
    return None


def faulty(method, fault):
    def make(config):
        found = Mine(k=config.k, iterations=config.iterations, depth=config.depth)
        setattr(found, method, fault)
        return found

    return make


ask_raises, ask_none, ask_awaitable = (faulty("ask", fault) for fault in (boom, nothing, awaitable))
ask_strange = faulty("ask", lambda tree: exact.Selection(id=7, node=99, needs=("value",)))
tell_raises, tell_idle, tell_awaitable = (faulty("tell", fault) for fault in (boom, nothing, awaitable))
decide_raises, decide_none = (faulty("decide", fault) for fault in (boom, nothing))
decide_strange = faulty("decide", lambda tree: exact.Decision(edges=(9,), reason="", value=None))
advance_raises, advance_none = (faulty("advance", fault) for fault in (boom, nothing))
forecast_none = faulty("forecast", nothing)

gives_none, gives_error = nothing, boom


def gives_class(config):
    return Mine


def gives_unset(config):
    return type("Odd", (Mine,), {"simulates": None})(k=2, iterations=2, depth=2)


class Notes:
    version = "1:0"
    add = used = close = nothing

    def retrieve(self, context, kind, **options):
        return ()


def noting(method, fault):
    return type("Odd", (Notes,), {method: fault})


retrieve_raises, retrieve_none, retrieve_awaitable = (noting("retrieve", fault) for fault in (boom, nothing, awaitable))
version_raises, version_none = noting("version", property(boom)), noting("version", None)
add_raises, add_awaitable, used_awaitable = noting("add", boom), noting("add", awaitable), noting("used", awaitable)
close_raises, close_awaitable = noting("close", boom), noting("close", awaitable)


def memory_class():
    return Notes


class Chat:
    name, price = "own/chat", None

    def __init__(self, model):
        self.model = model

    async def complete(self, request):
        return None

    close = awaitable


def chatting(method, fault):
    return type("Odd", (Chat,), {method: fault})


complete_raises, complete_plain, hang_up = chatting("complete", boom), chatting("complete", nothing), chatting("close", boom)


def model_class(model):
    return Chat
