"""What requests hold while they wait, and that they hold nothing after their end, before garbage is searched for."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from nmt_core.serving import streams
from nmt_core.serving.admission import Admission
from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import RpcError, invalid
from nmt_core.serving.limits import REQUEST_COPIES, Account, Limits, Memory
from nmt_core.serving.methods.plan import ReadText, read_texts
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.telemetry import CALL, Call, Metrics
from nmt_core.serving.wire import MessageReader
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.http2 import RudeClient
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.support import until

MIB = 1 << 20


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Thing:
    """Anything that can be seen to go."""


class Context(SimpleNamespace):
    """As the library's: it keeps what ``abort`` raises."""

    async def abort(self, *status: object) -> None:
        self.aborted = grpc.aio.AbortError()
        raise self.aborted


def test_requests_that_wait_leave_no_room_for_new_ones_but_are_in_nobodys_way() -> None:
    memory = Memory(100 * REQUEST_COPIES)
    with Account(memory, "a") as first, Account(memory, "a") as second, Account(memory, "a") as new:
        for one in (first, second):
            one.charge_message(20)
            one.release(waiting=20)
        assert memory.held.total == 0
        with pytest.raises(RpcError) as caught:
            new.charge_message(20)  # with those that wait more than the half that one client has
        assert caught.value.reason == "MEMORY_FULL"
        with Account(memory, "b") as other:
            other.charge_message(50)
        first.charge_message(20)
        first.charge(30 * REQUEST_COPIES)
        with pytest.raises(RpcError):
            second.charge_message(20)
        first.release()
        second.charge_message(20)
        assert memory.held.total == 20 * REQUEST_COPIES
    with Account(memory, "a") as new:
        new.charge_message(90)
    assert memory.held.total == 0


def test_clients_whose_messages_wait_leave_room_for_others() -> None:
    """Each may add to what waits of it only while as much again stays free."""
    memory = Memory(128 * REQUEST_COPIES)
    with contextlib.ExitStack() as stack:

        def waiting(client: str) -> int:
            for count in range(100):
                account = stack.enter_context(Account(memory, client))
                try:
                    account.charge_message(4)
                except RpcError:
                    return count
                account.release(waiting=4)
            raise AssertionError("there is no end of room")

        assert [waiting(client) for client in "abcd"] == [16, 8, 4, 2]
        for amount in (4, 4):
            stack.enter_context(Account(memory, "new")).charge_message(amount)


async def test_the_message_of_a_call_is_held_until_its_end() -> None:
    """Three times, beside what its pairs cost, which a field that nobody knows does not change."""
    held, request = [], one_pair().SerializeToString()
    for unknown in (b"", b"\xa2\x06\x64" + bytes(100)):
        async with serving() as (server, gate, _, channel, _):
            gate.close()
            call = channel.unary_unary("/nmt_core.v1.NmtService/Score")(request + unknown)
            await gate.is_entered()
            held.append(server.servicer.memory.held.total)
            gate.open.set()
            await call
            await until(lambda memory=server.servicer.memory: memory.held.total == 0)
    assert held[1] - held[0] == 3 * 103


async def test_a_stream_reads_no_further_until_there_is_room_for_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else as many requests as it may have under way would be parsed, and held beside all that is accounted for."""
    count, refused, parsed = 8, [], []
    monkeypatch.setattr(streams, "_PAUSE", 0.01)
    check, parse = Memory.check, MessageReader.parse

    def counted_check(self: Memory, *arguments: Any, **options: Any) -> None:
        try:
            check(self, *arguments, **options)
        except RpcError:
            refused.append(1)
            raise

    def counted_parse(self: MessageReader, *arguments: Any) -> Any:
        parsed.append(1)
        return parse(self, *arguments)

    monkeypatch.setattr(Memory, "check", counted_check)
    monkeypatch.setattr(MessageReader, "parse", counted_parse)

    async with serving(Limits(memory_mib=8)) as (server, gate, _, _, stub):
        gate.open.clear()
        stream, pairs = stub.ScoreStream(), [pb.Pair(source="a" * 10_000, target="ab")] * 100

        async def send() -> None:
            for number in range(count):
                await stream.write(pb.ScoreStreamRequest(id=str(number), request=pb.ScoreRequest(pairs=pairs)))
            await stream.done_writing()

        sending = asyncio.create_task(send())
        await until(lambda: len(refused) > 20)
        assert len(parsed) == 1
        gate.open.set()
        names = sorted([answer.id async for answer in stream])
        await sending
        assert server.servicer.memory.held.total == 0
    assert names == [str(number) for number in range(count)]


async def test_what_nobody_reads_yet_stays_with_its_client(rude) -> None:
    """The library's own buffers are beside all that is accounted for, and every call has one."""
    async with serving(Limits(stream_requests=1)) as (_, gate, address, *_):
        gate.close()
        client = rude(address)
        stream = client.call("/nmt_core.v1.NmtService/ScoreStream")
        client.send(stream, pb.ScoreStreamRequest(request=one_pair()).SerializeToString(), more=True)
        await gate.is_entered()  # after which the stream is read no further
        taken = await asyncio.to_thread(client.send_half, stream, 100 * MIB, 2.0)
    assert taken <= 128 << 10


async def test_clients_that_hang_up_before_their_answers_write_nothing_into_the_log(
    caplog: pytest.LogCaptureFixture, rude: Callable[..., RudeClient]
) -> None:
    """Else whoever does so often fills the disk."""
    async with serving() as (server, gate, address, *_):
        gate.close()
        clients = [rude(address) for _ in range(20)]
        request = pb.ScoreStreamRequest(request=one_pair()).SerializeToString()
        for client in clients:
            stream = client.call("/nmt_core.v1.NmtService/ScoreStream")
            for _ in range(5):
                client.send(stream, request, more=True)
        await gate.is_entered()
        await until(lambda: len(server.admission.unfinished) == 20)
        gate.open.set()
        for client in clients:
            client.close()
        await until(lambda: not server.admission.unfinished)
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.usefixtures("without_garbage_collection")
async def test_what_was_refused_is_not_held_until_garbage_is_searched_for() -> None:
    held: list[weakref.ref[Thing]] = []

    async def handle(call: object, stack: object) -> None:
        request = Thing()
        held.append(weakref.ref(request))
        try:
            raise ValueError(request)
        except ValueError as error:
            raise invalid("", "refused") from error

    calls = Admission(Limits(), Memory(100), Metrics())
    context = Context(invocation_metadata=tuple, peer=lambda: "ipv4:127.0.0.1:1", auth_context=dict)
    with pytest.raises(grpc.aio.AbortError):
        await calls._call("Score", calls._calls, context, handle)  # type: ignore[arg-type]
    assert context.aborted is not None
    assert [one() for one in held] == [None]


@pytest.mark.usefixtures("without_garbage_collection")
async def test_a_question_that_was_refused_is_not_held_either() -> None:
    """Strangers may ask for the health, and what they send may be as large as any message."""
    content = bytes(1 << 17)

    async def read() -> bytes:
        return content

    handler = Admission(Limits(), Memory(100), Metrics())._health(SimpleNamespace(response_serializer=None))
    context = Context(peer=lambda: "ipv4:127.0.0.1:1", read=read)
    before = sys.getrefcount(content)
    with pytest.raises(grpc.aio.AbortError):
        await handler.stream_unary(None, context)
    assert context.aborted is not None
    assert sys.getrefcount(content) == before


@pytest.mark.usefixtures("without_garbage_collection")
async def test_a_stream_that_has_ended_does_not_hold_what_waited_for_room() -> None:
    content = bytes(1 << 17)

    async def parse(content: bytes) -> bytes:
        return content

    async def read() -> streams.StreamRequest:
        return streams.StreamRequest(functools.partial(parse, content), 1)

    CALL.set(Call("ScoreStream", "", ""))
    memory = Memory(10)
    memory.held.add("another", 10)
    nothing: Any = None  # is answered
    stream = streams.Stream(nothing, nothing, nothing, Limits(), memory, nothing)
    before = sys.getrefcount(content)
    running = asyncio.create_task(stream.run(read))
    for _ in range(10):
        await asyncio.sleep(0)
    assert sys.getrefcount(content) > before
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    del running
    assert sys.getrefcount(content) == before


@pytest.mark.usefixtures("without_garbage_collection")
async def test_a_tokeniser_goes_with_its_model() -> None:
    """Also where a call that began with the old model needs it after the models were exchanged."""

    def processor() -> Any:
        return SimpleNamespace(tokenize=str.upper)

    model = ServedModel(None, decoder=None, processor=processor)  # type: ignore[arg-type]
    route: Any = SimpleNamespace(name="m", model=model)
    gone = weakref.ref(model)
    (found,) = await off_loop("a", math.inf, functools.partial(read_texts, ["a"], route, Limits(), raw=True))
    assert isinstance(found, ReadText)
    assert found.text == "A"
    del model, route
    assert gone() is None
