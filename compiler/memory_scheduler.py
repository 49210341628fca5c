"""The order of launches for a low peak of memory: what frees more bytes than it takes runs as soon as it can. In a
training step, for example, the gradient of each weight is computed when those of the activations are known, which then
are no longer needed. The order is only changed if the buffer plan needs fewer bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from trivium.compiler.buffers import arena_size
from trivium.compiler.donation import Wishes
from trivium.compiler.ordering import dependents
from trivium.compiler.program import Arena, Array, Copy, Launch, Program, Step, reads, walk, writes
from trivium.compiler.target import Target


def schedule_for_memory(program: Program, target: Target, donated: Wishes) -> None:
    """Changes the order of launches between other steps, if the arena becomes smaller. `donated`: the arguments in
    whose memory results may be, which are not computed before the arguments have been read."""
    steps = list(_Scheduler(program, donated).steps())
    if steps == program.steps:
        return
    before, program.steps, steps = arena_size(program, target, donated), steps, program.steps
    if arena_size(program, target, donated) >= before:
        program.steps = steps


class _Scheduler:
    """Orders the steps of a program, from the first to the last. `_left` says how many steps have yet to read a
    value."""

    def __init__(self, program: Program, donated: Wishes) -> None:
        self._program = program
        self._left = Counter(value for step in walk(program.steps) for value in set(reads(step)))
        self._left.update(program.outputs)
        self._begun: set[Array] = set()
        self._waiting = dict(_given_away(program, donated))
        self._growths: dict[Launch, int] = {}
        self._accesses: dict[Launch, tuple[set[Array], set[Array]]] = {}
        self._concerned: dict[Array, dict[Launch, None]] = defaultdict(dict)
        for launch in (step for step in program.steps if isinstance(step, Launch)):
            self._accesses[launch] = set(reads(launch)), set(writes(launch))
            arguments = (given for value in launch.arguments for given in self._waiting.get(value, ()))
            temporaries = (value for value in launch.arguments if isinstance(value.storage, Arena))
            for value in (*temporaries, *arguments):
                self._concerned[value][launch] = None

    def steps(self) -> Iterator[Step]:
        segment: list[Launch] = []
        for step in self._program.steps:
            if isinstance(step, Launch):
                segment.append(step)
                continue
            yield from self._ordered(segment)
            segment = []
            for inner in walk([step]):
                self._run(inner)
            yield step
        yield from self._ordered(segment)

    def _ordered(self, launches: Sequence[Launch]) -> Iterator[Launch]:
        """Yields launches in the order that they have, except for those that free more than they take."""
        after = dependents(launches)
        waits = Counter(following for launch in launches for following in after[launch])
        ready = {launch: None for launch in launches if not waits[launch]}
        left = dict.fromkeys(launches)
        while left:
            launch = min(ready, key=self._growth)
            if self._growth(launch) >= 0:
                launch = next(iter(left))
            del left[launch], ready[launch]
            self._run(launch)
            yield launch
            for following in after[launch]:
                waits[following] -= 1
                if not waits[following]:
                    ready[following] = None

    def _growth(self, launch: Launch) -> int:
        """Returns the number of bytes by which the memory in use grows with a launch."""
        if launch not in self._growths:
            self._growths[launch] = self._computed_growth(launch)
        return self._growths[launch]

    def _computed_growth(self, launch: Launch) -> int:
        read, written = self._accesses[launch]
        for result in written & self._waiting.keys():
            if any(self._left[argument] > (argument in read) for argument in self._waiting[result]):
                return 0
        taken = sum(value.nbytes for value in written if value not in self._begun)
        freed = (value for value in read if self._left[value] == 1 and isinstance(value.storage, Arena))
        return taken - sum(value.nbytes for value in freed)

    def _run(self, step: Step) -> None:
        read, written = set(reads(step)), writes(step)
        for value in read:
            self._left[value] -= 1
        self._begun.update(written)
        for value in (*read, *written):
            for launch in self._concerned.get(value, ()):
                self._growths.pop(launch, None)


def _given_away(program: Program, donated: Wishes) -> Iterator[tuple[Array, list[Array]]]:
    """Yields each value that becomes a result, with the arguments in whose memory it may be."""
    numbers: Mapping[Array, int] = {result: number for number, result in enumerate(program.outputs)}
    for step in program.steps:
        if isinstance(step, Copy) and step.destination in numbers:
            number = numbers[step.destination]
            wished = [program.inputs[index] for index, wish in donated.items() if wish == number]
            free = [program.inputs[index] for index, wish in donated.items() if wish is None]
            yield step.source, wished or [one for one in free if one.nbytes == step.source.nbytes]
