"""Long work in a process of its own: what comes of it, whose turn it is, and how it ends."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from berth.cluster.access.users import User, service_account
from berth.cluster.fair_queue import QueueFullError
from berth.cluster.http.long_work import MOST_YAML, SHORT_YAML, LongWork
from berth.cluster.resources import Object
from berth.cluster.strategies.selectors_to_check import Unchecked
from berth.cluster.work_process import (
    Job,
    Selector,
    WorkError,
    WorkProcess,
    WorkRefusedError,
)
from berth.kube import documents
from berth.kube.cel.features import DEFAULT
from berth.kube.cel.selectors import Expression, compile_expression
from tests.cluster.access.secured import ALICE, Secured

pytestmark = pytest.mark.wall

EVE = User("eve")
STUCK = (sys.executable, "-c", "import sys, time; sys.stdin.buffer.read(5); time.sleep(600)")
DYING = (sys.executable, "-c", "pass")
# Says who is served, one after the other, as JSON.
ECHO = (
    sys.executable,
    "-c",
    "import sys\n"
    "while len(head := sys.stdin.buffer.read(5)) == 5:\n"
    "    content = sys.stdin.buffer.read(int.from_bytes(head[:4], 'big'))\n"
    "    sys.stdout.buffer.write(head[:4] + b'\\0' + content)\n"
    "    sys.stdout.buffer.flush()\n",
)


@pytest_asyncio.fixture
async def work() -> AsyncIterator[WorkProcess]:
    process = WorkProcess()
    yield process
    await process.close()


async def test_what_comes_of_it(work: WorkProcess) -> None:
    assert await work.do(Job.YAML, b"a: [1, 2]", EVE) == b'{"a":[1,2]}'
    with pytest.raises(WorkRefusedError, match="value contains itself"):
        await work.do(Job.YAML, b"&a [*a]", EVE)
    for source, detail in (("true", ""), ("1 +", "compilation failed: ")):
        asked = msgspec.msgpack.encode(Selector(source, tuple(DEFAULT)))
        found = msgspec.msgpack.decode(await work.do(Job.SELECTOR, asked, EVE))
        assert found["detail"][:20] == detail[:20]
        assert bool(found["program"]) is not bool(detail)


async def test_flows_take_turns() -> None:
    work = WorkProcess(ECHO)
    order: list[str] = []

    async def ask(user: User) -> None:
        order.append((await work.do(Job.YAML, user.name.encode(), user)).decode())

    greedy = [service_account("greedy", f"a{number}") for number in range(4)]
    await asyncio.gather(*map(ask, [*greedy, EVE]))
    assert order == [greedy[0].name, EVE.name, *(each.name for each in greedy[1:])]
    await work.close()


async def test_what_takes_too_long_is_killed_and_the_next_is_done() -> None:
    work = WorkProcess(STUCK, most_seconds=0.2)
    for _ in range(2):
        with pytest.raises(WorkRefusedError, match=r"it takes more than 0\.2 s"):
            await work.do(Job.YAML, b"a", EVE)
    await work.close()


async def test_a_process_that_ends_is_replaced() -> None:
    work = WorkProcess(DYING)
    for _ in range(2):
        with pytest.raises(WorkError, match="its process has ended"):
            await work.do(Job.YAML, b"a", EVE)
    await work.close()


async def test_it_ends_at_once_whatever_it_does() -> None:
    work = WorkProcess(STUCK)
    asking = [asyncio.create_task(work.do(Job.YAML, b"a", EVE)) for _ in range(3)]
    for _ in range(1_000):
        if work._process is not None:
            break
        await asyncio.sleep(0.01)
    assert work._process is not None
    process = work._process
    await work.close()
    assert process.returncode is not None
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert {str(each) for each in found} == {"the server is shutting down"}
    with pytest.raises(WorkError):
        await work.do(Job.YAML, b"a", EVE)


async def test_it_ends_when_nobody_asks() -> None:
    work = WorkProcess(idle_seconds=0.01)
    await work.do(Job.YAML, b"a", EVE)
    assert work._working is not None
    await work._working
    assert work._process is None
    assert await work.do(Job.YAML, b"a", EVE) == b'"a"'
    await work.close()


async def test_a_flow_that_asks_too_much_is_refused() -> None:
    work = WorkProcess(STUCK)
    asking = [asyncio.create_task(work.do(Job.YAML, b"a", EVE)) for _ in range(60)]
    await asyncio.sleep(0)
    refused = [task for task in asking if task.done()]
    assert refused
    assert all(isinstance(task.exception(), QueueFullError) for task in refused)
    await work.close()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_yaml_takes_no_time_of_this_process() -> None:
    content = "\n".join(f"k{n}: [a, b, c]" for n in range(3_000)).encode()
    assert len(content) < SHORT_YAML
    started = time.process_time()
    documents.load(content)
    here = time.process_time() - started
    long_work = LongWork()
    await long_work.yaml_as_json(b"a: " + b"b" * 5_000, EVE)  # it has started
    started = time.process_time()
    found = await long_work.yaml_as_json(content, EVE)
    assert time.process_time() - started < here / 5
    assert msgspec.json.decode(found) == documents.load(content)
    await long_work.close()


async def test_a_selector_compiled_elsewhere_is_as_good() -> None:
    source = " || ".join(f'device.driver == "d{n}"' for n in range(300))
    here = Expression(source)
    long_work = LongWork()
    await long_work.compile([Unchecked(source, DEFAULT), Unchecked("1 +", DEFAULT)], EVE)
    await long_work.close()
    found = compile_expression(source)
    assert isinstance(found, Expression)
    assert (found.cost, found.work) == (here.cost, here.work)
    assert found.program.load().return_type() == here.program.load().return_type()
    assert str(compile_expression("1 +")).startswith("CEL compile error: compilation failed: ")


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def claim(name: str, *selectors: str) -> Object:
    asked = {
        "deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": selector}} for selector in selectors],
    }
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": asked}]}},
    }


async def test_requests_with_long_selectors_and_yaml() -> None:
    secured = Secured()
    rule: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    await secured.grant(ALICE.name, rule)
    headers = {"authorization": f"Bearer {secured.tokens.issue(ALICE)}"}

    async def post(content: bytes, media_type: str) -> tuple[int, Object]:
        answer = await secured.http.post(
            CLAIMS, content=content, headers={**headers, "content-type": media_type}
        )
        return answer.status_code, answer.json()

    terms = [f'device.driver == "e{n}"' for n in range(200)]
    selector = " || ".join(terms)
    asked = msgspec.json.encode(claim("c", selector, f"{selector} || {terms[0]}"))
    code, answer = await post(asked, "application/json")
    assert code == 201, answer
    code, answer = await post(msgspec.json.encode(claim("d", f"{selector} ||")), "application/json")
    assert (code, answer["reason"]) == (422, "Invalid")
    assert "compilation failed" in answer["message"]
    code, answer = await post(
        msgspec.json.encode(claim("e", selector)).ljust(5_000), "application/yaml"
    )
    assert code == 201, answer
    code, answer = await post(b"a: b\n" * (MOST_YAML // 5 + 1), "application/yaml")
    assert (code, answer["message"]) == (
        413, f"Request entity too large: limit is {MOST_YAML} for YAML",
    )  # fmt: skip

    # Validation keeps nobody waiting: selectors are compiled before it, and elsewhere.
    many = [" || ".join(f'device.driver == "f{n}{i}"' for n in range(250)) for i in range(4)]
    started = time.process_time()
    for each in many:
        Expression(each)
    here = time.process_time() - started
    started = time.process_time()
    code, answer = await post(msgspec.json.encode(claim("f", *many)), "application/json")
    assert code == 201, answer
    assert time.process_time() - started < here / 3
    await secured.server.stop()
