"""One training under way. `Run.step` is the whole method: one line a folder, nothing in it waits for the device."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..core import Batch, EquipoiseError, Output, Spec
from ..data import Features, Task, crops_of, normalize
from ..data.task import streamed
from ..imbalance import shard_by_shard
from ..imbalance.samplers.shard_by_shard import WINDOW
from ..mixing import Mixed, MixPlan
from ..models import FreshHead, FrozenBody, Network, create_model
from ..models.create import head_factory
from ..models.pretraining import for_channels
from ..norms import pull_towards_one
from .ema import Average
from .embed import backbone_of
from .feed import Streamed, feed_of
from .half_weights import HalfWeights
from .objective import Objective, Terms
from .optimizer import make_optimizer
from .procedures import Procedure
from .recipe import Recipe
from .schedule import learning_rates
from .stages import Stage
from .streams import Streams
from .team import ALONE, Team


class Run:
    """Everything a step touches, on the device: data, network, objective, rates, counters and random streams."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        device: torch.device,
        weights: Mapping[str, Tensor] | None = None,
        layout: torch.memory_format = torch.channels_last,
        from_file: bool = True,
        team: Team = ALONE,
    ) -> None:
        """`weights` are those of the recipe's parent, where it continues from one (a second stage).

        `layout` of images and maps in memory changes the speed, and the numbers by rounding alone. `from_file=False`
        leaves the plan's file of weights alone: the network is to be given weights that were trained. `team` are the
        processes that train it together, each with its share of every batch.
        """
        self.recipe, self.task, self.device, self.layout, self.team = recipe, task, device, layout, team
        self.streams = Streams(recipe.seed, device)
        self.second_stage: Stage | None = Spec.parse(recipe.stage).build("stage") if recipe.stage else None
        self.plan = plan = recipe.plan if self.second_stage is None else self.second_stage.plan(recipe.plan)
        part = min(plan.batch_size, len(task.train)) // plan.accumulate
        recipe.check_processes(team.size, part)
        self.batch_size = part * plan.accumulate  # of all processes together
        self.part_size = len(team.share(part))  # what passes the network at a time
        self.batch_here = self.part_size * plan.accumulate
        start = plan.weights if from_file and self.second_stage is None else None
        self._build({**task.facts(), "batch_size": self.batch_size}, weights, start)
        self.steps_per_epoch = self.sampler.epoch_length // self.batch_size  # every batch is full: shapes stay fixed
        warmup = float(plan.warmup or 0)
        schedule = Spec.parse(plan.schedule).build("schedule", epochs=plan.epochs, warmup_epochs=warmup)
        rates = learning_rates(schedule, plan.lr, plan.epochs, warmup, self.steps_per_epoch)
        self.rates = rates.to(device, torch.float32)
        self.optimizer, self.rate = make_optimizer(self.network, plan, device)
        self.trained = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        self.gradients = team.gradients(self.network.parameters(), plan.accumulate)
        self.average = Average(self.network, plan.ema) if plan.ema is not None else None
        self.half_weights, self.compiled = HalfWeights(self.network), False
        self.done = torch.zeros((), dtype=torch.int64, device=device)  # steps taken
        self.bad_step = torch.full((), -1, dtype=torch.int64, device=device)  # the first whose loss was not finite
        self.loss_sum = torch.zeros((), dtype=torch.float32, device=device)  # over the epoch
        self.order = self._mine(torch.empty(self.sampler.epoch_length, dtype=torch.int64, device=device))
        self.places = torch.arange(self.batch_here, device=device)  # of a batch's samples, from its first on

    def _build(self, facts: dict[str, Any], weights: Mapping[str, Tensor] | None, start: str | None) -> None:
        """Network and methods from the recipe's texts, the network from the file `start` if there is one."""
        recipe = self.recipe if self.second_stage is None else replace(self.recipe, sampler=self.second_stage.sampler)

        def built(kind: str) -> Any:
            text = getattr(recipe, kind)
            return text and Spec.parse(text).build(kind, **facts)

        self.procedure: Procedure | None = built("procedure")
        with self.streams.initial_weights(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FreshHead)  # the study has said it once
            network = self._network(recipe, facts, start)
            self.mean, self.std = (value.to(self.device) for value in self._scale(network))
            if self.procedure is not None:
                network = self.procedure.adapt(network, head_factory(recipe.head))
            if self.second_stage is not None:
                assert weights is not None, "a second stage continues from the weights of the first"
                network.load_state_dict(dict(weights))
                self.second_stage.prepare(network)
        self.network = network.to(self.device).to(memory_format=self.layout)  # type: ignore[call-overload]
        self.objective = Objective(built("loss"), built("weighting"), built("penalty")).to(self.device)
        self.mix = built("mix")
        self.mix_plan: MixPlan | None = None
        if self.mix is not None:
            self.mix.to(self.device).generator = self.streams["mix"]
        self.sampler, self.augment = built("sampler"), built("augment")
        images = self.task.train.images
        self.feed = feed_of(images, self.batch_here, self.device, self.augment)
        # what is left to do where the feed has cut out boxes
        self.augment_rest = self.augment if crops_of(images, self.augment) is None else self.augment.after_crop
        if self.second_stage is not None:
            self.procedure = None  # it has made the network what it is; the second stage has the plain step
        if self.procedure is not None:
            if isinstance(self.feed, Streamed):
                raise EquipoiseError(f"{recipe.procedure} draws images by itself, so they must fit the device's memory")
            self.procedure.to(self.device).begin(self)
        for module in (*self.network.modules(), *self.objective.modules()):
            if hasattr(module, "generator"):
                module.generator = self.streams["noise"]

    def _network(self, recipe: Recipe, facts: dict[str, Any], start: str | None) -> Network:
        classes, channels = facts["num_classes"], facts["in_channels"]
        if recipe.plan.train == "all":
            return create_model(
                recipe.model, classes, norm=recipe.norm, head=recipe.head, in_channels=channels, weights=start
            )
        body = backbone_of(recipe.model, channels, recipe.plan.weights, self.device).network
        network = FrozenBody(body, classes, head_factory(recipe.head))
        assert isinstance(self.task.train.images, Features), "a head is trained on features"
        network.scale.fit(*self.task.train.images.mean_std)
        return network

    def _scale(self, network: Network) -> tuple[Tensor, Tensor]:
        """Mean and deviation that images are normalized by: those that the network's weights want, or the images'."""
        if network.pretraining is None:
            return self.task.mean_std
        wanted, channels = network.pretraining, self.task.train.images.shape[1]
        return torch.tensor(for_channels(wanted.mean, channels)), torch.tensor(for_channels(wanted.std, channels))

    # -- the step ----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One step of training."""
        for batch in self.parts():
            terms = self.terms(batch) if self.procedure is None else self.procedure(self, batch)
            self.gradients.add(terms)
        self.update(self.gradients.take())

    def parts(self) -> Iterator[Batch]:
        """The next batch, as the network takes it: whole, or in the parts that the plan accumulates gradients over."""
        return self.parts_of(*self.next_index())  # imbalance: which samples

    def parts_of(self, index: Tensor, place: Tensor) -> Iterator[Batch]:
        """The batch of the samples at `index`, which are at `place` in the order of the epoch."""
        images = self.augment_rest(self.feed(index, place), self.streams["augment"])  # data
        labels = self.task.train.labels[index]
        for part, target in zip(images.chunk(self.plan.accumulate), labels.chunk(self.plan.accumulate), strict=True):
            yield Batch(self.inputs(part), target)

    def terms(self, batch: Batch) -> Terms:
        """What is minimised for this batch, unless the recipe has a procedure of its own."""
        batch = self.mixed(batch)  # mixing
        out = self.output(batch)  # models, norms
        return self.objective(out, batch, self.progress)  # losses · weighting + penalty

    def output(self, batch: Batch) -> Output:
        """What the network makes of a batch that `mixed` has seen."""
        with self._mixing_inside(), self.precision(), self._half_weights():
            return self.network.output(batch.inputs)

    def update(self, loss: Tensor) -> None:
        """Move the weights, and count."""
        self.move_weights()
        self.count(loss)

    def move_weights(self) -> None:
        """By the gradients that the parameters have."""
        pull_towards_one(self.optimizer.param_groups)  # where the plan lets γ decay to 1
        self.optimizer.step()
        for parameter in self.trained:
            parameter.grad = None
        if self.average is not None:
            self.average.update()

    @property
    def members(self) -> list[Run]:
        """This run, and the peers that its procedure trains beside it."""
        return [self, *(() if self.procedure is None else self.procedure.peers)]

    @property
    def capturable(self) -> bool:
        """Whether the host decides no more of its step than `phase` tells, so that a GPU's graph can have it."""
        return self.procedure is None or self.procedure.in_graphs

    @property
    def phase(self) -> Hashable:
        """What its step of this epoch is, where that changes from epoch to epoch."""
        return self.procedure and self.procedure.phase

    @property
    def generators(self) -> list[torch.Generator]:
        """All that its step draws random numbers from."""
        return [generator for member in self.members for generator in member.streams.generators.values()]

    @property
    def lr(self) -> Tensor:
        """The learning rate of this step, on the device."""
        return self.rate.base

    @property
    def progress(self) -> Tensor:
        """The share of training that is done, from 0 to 1, on the device."""
        return self.done / len(self.rates)

    def inputs(self, images: Tensor) -> Tensor:
        """Images as the network takes them; features as they are."""
        if images.is_floating_point():
            return images
        return normalize(images, self.mean, self.std).contiguous(memory_format=self.layout)

    def next_index(self) -> tuple[Tensor, Tensor]:
        """The samples of the next batch, and their places in the order of the epoch."""
        self.rate.set(self.rates.take(self.done))  # indexing with a tensor of one value would read it back
        place = self.places + (self.done % self.steps_per_epoch) * self.batch_here
        return self.order[place], place

    def mixed(self, batch: Batch) -> Batch:
        """The batch as the network and the objective see it; where a stage is mixed, `mix_plan` says how."""
        if self.mix is None:
            return batch
        if self.mix.stop < 1:
            self.mix.progress = self.progress
        if self.mix.site == "input":
            mixed = self.mix(batch.inputs, batch.target)
            return mixed.batch(mixed.inputs)
        self.mix_plan = self.mix.plan(batch.target)
        return Mixed(batch.target, self.mix_plan).batch(batch.inputs)

    @contextmanager
    def _mixing_inside(self) -> Iterator[None]:
        """Within the block, what the stage of the mixing's site puts out is mixed."""
        if self.mix is None or self.mix.site == "input":
            yield
            return
        stage = self.network.get_submodule(self.mix.site)
        with self.mix.carried_out(stage, self.mix_plan):
            yield

    def precision(self) -> AbstractContextManager[None]:
        """bf16 arithmetic in the network where the plan asks for it."""
        if self.plan.precision != "bf16":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _half_weights(self) -> AbstractContextManager[None]:
        """On a GPU, weights of convolutions in bf16 where the plan asks for it; a compiler casts by itself."""
        if self.plan.precision != "bf16" or self.device.type != "cuda" or self.compiled:
            return nullcontext()
        return self.half_weights.in_place()

    @torch.no_grad()
    def count(self, loss: Tensor) -> None:
        """One more step, of this loss."""
        first_bad = (self.bad_step < 0) & (loss - loss != 0)  # of two like numbers that are not finite it is NaN
        self.bad_step.copy_(torch.where(first_bad, self.done, self.bad_step))
        self.loss_sum += loss
        self.done += 1

    def rewind(self) -> None:
        """Count from the first step again; weights stay. For measurements, which need more steps than a plan has."""
        for member in self.members:
            member.done.zero_()

    def compile(self) -> None:
        """Let PyTorch fuse each stage of the network; worth its start-up time on a GPU and for long studies."""
        for member in self.members:
            member.compiled = True
            for name in member.network.stages:
                stage = member.network.get_submodule(name)
                # the forward alone, so that a mixing's hook stays outside
                stage.forward = torch.compile(stage.forward, dynamic=False)

    # -- an epoch ----------------------------------------------------------------------------------------------------

    def epoch(self, number: int) -> float:
        """Train for one epoch and give its mean loss."""
        self.begin_epoch(number)
        for _ in range(self.steps_per_epoch):
            self.feed.advance()
            self.step()
        return self.end_epoch()

    def begin_epoch(self, number: int) -> None:
        """Draw the order of the epoch and go into training mode."""
        self.network.train()
        if self.second_stage is not None:
            self.second_stage.freeze(self.network)
        self.loss_sum.zero_()
        self.team.begin_epoch(self.streams, number)
        self.order.copy_(self._mine(self._drawn(number / self.plan.epochs)))
        self.feed.start_epoch(self.order, self.streams["augment"])
        if self.procedure is not None:
            self.procedure.start_epoch(self, number)

    def _drawn(self, progress: float) -> Tensor:
        """The order of the next epoch: the sampler's, and of images that are streamed, shard by shard."""
        stream, images = self.streams["order"], self.task.train.images
        order: Tensor = self.sampler.order(stream, progress)
        if streamed(images) and not self.sampler.composes_batches:
            return shard_by_shard(order, images.shard_numbers, WINDOW, stream)
        return order

    def _mine(self, order: Tensor) -> Tensor:
        """Of the order of an epoch, the samples that are this process's."""
        return self.team.of_epoch(order, self.batch_size // self.plan.accumulate)

    def end_epoch(self) -> float:
        """The mean loss of the epoch; the only place that waits for the device."""
        if (bad := int(self.bad_step)) >= 0:
            raise Diverged(bad)
        self.team.average_buffers(self.network)
        if self.average is not None:
            self.team.average_buffers(self.average.network)
        return float(self.loss_sum) / self.steps_per_epoch

    @property
    def evaluated(self) -> Network:
        """The network that predictions are made with."""
        return self.network if self.average is None else self.average.network

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        # a pack may hold what several runs have in one tensor, which would be saved whole
        network = {name: value.clone() for name, value in self.network.state_dict().items()}
        optimizer = self.optimizer.state_dict()
        optimizer["state"] = {
            number: {name: value.clone() if isinstance(value, Tensor) else value for name, value in state.items()}
            for number, state in optimizer["state"].items()
        }
        return {
            "network": network,
            "average": self.average and self.average.network.state_dict(),
            "optimizer": optimizer,
            "objective": self.objective.state_dict(),
            "procedure": self.procedure and self.procedure.state_dict(),
            "peers": [peer.state_dict() for peer in self.members[1:]],
            "streams": self.streams.state_dict(),
            "global_stream": torch.get_rng_state(),
            "done": self.done,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        if self.average is not None:
            self.average.network.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rate.show(self.optimizer)  # loading put a copy there, which no step would move
        self.objective.load_state_dict(state["objective"])
        if self.procedure is not None:
            self.procedure.load_state_dict(state["procedure"])
        for peer, its_state in zip(self.members[1:], state.get("peers", ()), strict=True):
            peer.load_state_dict(its_state)
        self.streams.load_state_dict(state["streams"])
        torch.set_rng_state(state["global_stream"].cpu())
        self.done.copy_(state["done"])


class Diverged(ArithmeticError):
    """The loss was not finite; `step` counts from 0."""

    def __init__(self, step: int) -> None:
        super().__init__(f"the loss was not a finite number at step {step}; a lower lr, or a longer warmup, may help")
        self.step = step
