import exact


async def test_a_task_is_carried_out_by_hand():
    async with exact.make("miniwob/click-test") as environment:
        observation = await environment.reset()
        [button] = [each for each in observation.elements if each.role == "button"]
        transition = await environment.step(f"click [{button.id}]")
        assert transition.terminated and (await environment.evaluate()).value == 1.0
        assert environment.task.id.startswith("miniwob/click-test")
