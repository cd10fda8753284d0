"""Runs whose networks are alike, trained as one: their bodies in one launch a layer, heads and objectives each alone.

A run's numbers do not depend on its company: every sum is taken in an order that knows of its own run alone.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core import Batch, Output
from ...models.networks.cifar_resnet import CifarResNet
from ...native.cuda import CannotCompile
from ...norms import BatchGroupNorm2d, BatchNorm2d, GhostBatchNorm2d, GroupNorm2d
from ...norms.kernels.groups import split_examples
from ..loop import Run
from ..objective import Terms
from .counters import Counters
from .descent import Descent, Rows
from .images import MovedImages, are_only_moved
from .kernels import STORED_CHANNELS
from .layer import Layer
from .trunk import SIDE, WIDTH, Trunk

NORMS = (BatchNorm2d, GhostBatchNorm2d, BatchGroupNorm2d, GroupNorm2d)
MOVING = {"running_mean": "mean", "running_square": "square", "square_rest": "rest", "running_var": "var"}
OLDEST = (8, 0)  # compute capability that multiplies matrices of bf16

SideBySide = Callable[[Callable[[Run], Any], Sequence[Run]], list[Any]]


def why_not_stacked(run: Run) -> str | None:
    """Why this run cannot be stacked, in a few words; None if it can."""
    network, plan = run.network, run.plan
    if plan.precision != "bf16":
        return f"precision is {plan.precision}"
    plain = run.procedure is None or bool(run.procedure.peers)  # peers are rows of the stack, with plain steps
    if plan.accumulate != 1 or not plain or run.second_stage is not None or run.team.size > 1:
        return "its steps are not the plain ones"
    if type(network) is not CifarResNet or network.width != WIDTH:
        return "there are kernels for CIFAR ResNets of width 16 alone"
    if tuple(run.task.train.images.shape[2:]) != (SIDE, SIDE) or run.task.train.images.shape[1] > STORED_CHANNELS:
        return f"images are not {SIDE} × {SIDE} of up to {STORED_CHANNELS} channels"
    if any(stage._forward_hooks or "forward" in stage.__dict__ for stage in network.modules()):
        return "somebody looks into the network, or it is compiled"
    if not all(p.requires_grad and p.dtype == torch.float32 for p in network.parameters()):
        return "some of its weights are frozen"
    if reason := next((reason for _, norm in layers_of(network) if (reason := _no_norm(norm))), None):
        return reason
    if run.device.type != "cuda" or torch.version.cuda is None or torch.cuda.get_device_capability(run.device) < OLDEST:
        return "not on an NVIDIA GPU of compute capability 8.0 or later"
    if run.device.index not in (None, torch.cuda.current_device()):
        return "its GPU is not the one that this process works on"  # kernels are launched there
    return None


def _no_norm(norm: nn.Module) -> str | None:
    if type(norm) not in NORMS:
        return f"there are no kernels for {type(norm).__name__}"
    assert isinstance(norm, NORMS)
    usual = norm.weight is not None and norm.bias is not None and norm.running_mean is not None
    return None if usual and norm.momentum is not None and norm.track_running_stats else "its norms are unusual"


def layers_of(network: nn.Module) -> list[tuple[nn.Conv2d, Any]]:
    """Convolutions and the norms that follow them, in the order of the network."""
    modules = [m for name in ("stem", "stage1", "stage2", "stage3") for m in network.get_submodule(name).modules()]
    convolutions = [m for m in modules if isinstance(m, nn.Conv2d)]
    norms = [m for m in modules if isinstance(m, nn.modules.batchnorm._NormBase)]
    return list(zip(convolutions, norms, strict=True))


def stacks_of(runs: Sequence[Run]) -> list[Stack]:
    """Those that can be stacked, each with its like."""
    alike: dict[tuple[int, ...], list[Run]] = defaultdict(list)
    for run in runs:
        if why_not_stacked(run) is None:
            assert isinstance(run.network, CifarResNet)
            alike[run.network.depth, run.task.train.images.shape[1], run.batch_size].append(run)
    try:
        return [Stack(group) for group in alike.values()]
    except CannotCompile as error:
        warnings.warn(f"runs are trained on a stream each, which is slower: {error}", stacklevel=2)
        return []


class Stack:
    """Takes the weights and moving averages of its runs' bodies into one tensor; the networks go on looking at it.

    `leaders` are the runs that it is made of; `runs` has their peers too, where a procedure trains some beside them:
    each is a row of the tensors. Peers are given the batches of their leader.
    """

    def __init__(self, leaders: Sequence[Run]) -> None:
        self.leaders = list(leaders)
        self.runs = runs = [member for leader in leaders for member in leader.members]
        self.place = {id(run): i for i, run in enumerate(runs)}
        first = runs[0]
        assert isinstance(first.network, CifarResNet)
        blocks = max(self._split(run, norm)[1] for run in runs for _, norm in layers_of(run.network)[:1])
        channels = first.task.train.images.shape[1]
        self.trunk = Trunk(first.network.depth, channels, len(runs), first.batch_size, blocks, first.device)
        self.tracked = torch.zeros(len(runs), len(self.trunk.layers), dtype=torch.int64, device=first.device)
        self.mixing = {run.mix.site for run in runs if run.mix is not None} & {"stem", "stage1", "stage2"}
        self.mixed = {site: torch.empty_like(self._map(site)) for site in sorted(self.mixing)}
        self.into = {site: torch.empty_like(self._map(site)) for site in sorted(self.mixing)}
        self.last_gradient = torch.empty_like(self._map("stage3"))
        self.rows: dict[Tensor, Rows] = {}  # of each parameter
        decay = torch.zeros_like(self.trunk.parameters)
        for i, run in enumerate(runs):
            self._take_over(run, i, decay)
        self.counters = Counters(runs)
        self.descent = Descent(runs, self.rows, decay, self.trunk, self.counters.base)
        # where nothing but the head is left to move, that need not wait for the gradients of the body
        self.early = [run for run, moves in zip(runs, self.descent.moves, strict=True) if moves and run.average is None]
        self.late = [run for run in runs if run not in self.early]
        moved = [run for run in leaders if are_only_moved(run)]
        self.moved_images = MovedImages(moved, self.place, self.trunk, self.counters.index) if moved else None

    def _map(self, site: str) -> Tensor:
        """What the part of that name puts out."""
        return self.trunk.stem_map if site == "stem" else self.trunk.stages[int(site[-1]) - 1][-1].map

    @staticmethod
    def _split(run: Run, norm: Any) -> tuple[int, int]:
        """Examples of a norm's block, and blocks of a batch."""
        block = norm.block()
        return split_examples(run.batch_size, block.examples, 2)  # any map has more than one value for each channel

    # -- weights and moving averages ---------------------------------------------------------------------------------

    @torch.no_grad()
    def _take_over(self, run: Run, i: int, decay: Tensor) -> None:
        for number, (layer, (convolution, norm)) in enumerate(
            zip(self.trunk.layers, layers_of(run.network), strict=True)
        ):
            for parameter, at in (
                (convolution.weight, layer.weight), (norm.weight, layer.gamma), (norm.bias, layer.beta)
            ):  # fmt: skip
                self._take_parameter(parameter, i, at, decay)
            self._take_averages(norm, layer, i)
            self.tracked[i, number] = norm.num_batches_tracked
            norm._buffers["num_batches_tracked"] = self.tracked[i, number]
            layer.shared_channels[i] = layer.co // norm.block().groups
            layer.epsilon[i] = norm.eps
            self.trunk.rate[i] = norm.momentum
            self.trunk.block_size[i] = self._split(run, norm)[0]
        if run.average is not None:
            run.average.follow(run.network)

    def _take_parameter(self, parameter: Tensor, i: int, at: int, decay: Tensor) -> None:
        layout = torch.channels_last if parameter.dim() == 4 else torch.contiguous_format
        assert parameter.is_contiguous(memory_format=layout), "its values lie as the kernels read them"
        trunk, shape = self.trunk, (parameter.size(), parameter.stride())
        self.rows[parameter] = rows = Rows(*(
            whole[i].as_strided(*shape, whole[i].storage_offset() + at)
            for whole in (trunk.parameters, trunk.gradients, trunk.velocities, decay)
        ))  # fmt: skip
        rows.weight.copy_(parameter)
        parameter.data = rows.weight

    def _take_averages(self, norm: Any, layer: Layer, i: int) -> None:
        for name, moving in MOVING.items():
            if name in norm._buffers:
                start = layer.before * len(self.runs) + i * layer.co
                here = self.trunk.moving[moving][start : start + layer.co]
                here.copy_(norm._buffers[name])
                norm._buffers[name] = here

    # -- the step ----------------------------------------------------------------------------------------------------

    def step(self, side_by_side: SideBySide) -> None:
        """One step of all runs."""
        with self.trunk.aside():
            self.counters.choose_samples()
            chosen = torch.cuda.current_stream().record_event()
            self.counters.set_rates()
            self.trunk.arrange_weights()
            self.tracked += 1
        batches = self._batches(side_by_side, chosen)
        self.trunk.wait_for_aside()
        given, blended = self._forward(side_by_side)
        ends = side_by_side(lambda leader: self._end(leader, batches[id(leader)]), self.leaders)
        losses, of_maps = zip(*(end for of_members in ends for end in of_members), strict=True)
        with self.trunk.aside():
            self.counters.count(losses)
            side_by_side(self._move_weights, self.early)
        self._backward(side_by_side, of_maps, given, blended)
        self.descent.step()
        side_by_side(self._move_weights, self.late)

    def _batches(self, side_by_side: SideBySide, chosen: torch.cuda.Event) -> dict[int, Batch]:
        """The next batch of each leader, by its id, once samples are `chosen`; its images are where the trunk reads."""
        batches: dict[int, Batch] = {}

        def add(work: Callable[[Run], Batch], runs: Sequence[Run]) -> None:
            batches.update(zip(map(id, runs), side_by_side(work, runs), strict=True))

        moved = self.moved_images
        if moved is not None:
            add(moved.begin, moved.runs)
        torch.cuda.current_stream().wait_event(chosen)
        if moved is not None:
            moved.fill()
            add(lambda run: run.mixed(batches[id(run)]), [run for run in moved.runs if run.mix is not None])
        add(self._begin, [run for run in self.leaders if id(run) not in batches])
        side_by_side(self._share, [leader for leader in self.leaders if len(leader.members) > 1])
        return batches

    def _share(self, leader: Run) -> None:
        """Give the peers the batch of their leader."""
        first = self.place[id(leader)]
        for i, peer in enumerate(leader.members[1:], first + 1):
            self.trunk.images_in[i].copy_(self.trunk.images_in[first])
            peer.mix_plan = leader.mix_plan

    def _begin(self, run: Run) -> Batch:
        """The next batch of a run whose images are not just moved."""
        i = self.place[id(run)]
        (batch,) = run.parts_of(self.counters.index[i], self.counters.place[i])
        batch = run.mixed(batch)
        channels = batch.inputs.shape[1]
        self.trunk.images_in[i][..., :channels].copy_(batch.inputs.permute(0, 2, 3, 1))
        return batch

    def _forward(self, side_by_side: SideBySide) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Through all stages; what each was given, and how it was mixed."""
        given: dict[str, Tensor] = {}
        blended: dict[str, Any] = {}
        x = self.trunk.stem_forward()
        for number, site in enumerate(("stem", "stage1", "stage2")):
            if site in self.mixing:
                blended[site] = side_by_side(lambda run, site=site: self._mix(run, site), self.runs)  # type: ignore[misc]
                x = self.mixed[site]
            given[site] = x
            x = self.trunk.stage_forward(number, x)
        self.trunk.move_averages()
        self.trunk.pool()
        return given, blended

    def _mix(self, run: Run, site: str) -> tuple[Tensor, Tensor] | None:
        """What one run's next stage is given, into its place; what was mixed, and the result, where something was."""
        i = self.place[id(run)]
        if run.mix is None or run.mix.site != site:
            self.mixed[site][i].copy_(self._map(site)[i])
            return None
        leaf = self._map(site)[i].permute(0, 3, 1, 2).detach().requires_grad_()
        with run.precision():
            mixed = run.mix.blend(leaf, run.mix_plan)
        self.mixed[site][i].copy_(mixed.detach().permute(0, 2, 3, 1))
        return leaf, mixed

    def _end(self, leader: Run, batch: Batch) -> list[tuple[Tensor, Tensor | None]]:
        """Head and objective of a run and its peers, forward and backward: of each the loss, and the gradient of its
        last map where that does not come by its mean over pixels alone, whose gradient is in `feature_gradients`."""
        members, progress = leader.members, self.counters.progress[self.place[id(leader)]]
        outs, leaves = zip(*(self._output(member) for member in members), strict=True)
        if leader.procedure is None:
            terms = [leader.objective(*outs, batch, progress)]
        else:
            terms = leader.procedure.taught(leader, outs, batch, progress)
        return [self._derive(*each) for each in zip(members, terms, leaves, strict=True)]

    def _output(self, run: Run) -> tuple[Output, tuple[Tensor, Tensor]]:
        """What the head makes of the last map, and what gradients are wanted of: that map and its mean over pixels."""
        i, network = self.place[id(run)], run.network
        map = self._map("stage3")[i].permute(0, 3, 1, 2).detach().requires_grad_()
        pooled = self.trunk.features[i].detach().requires_grad_()
        with run.precision():
            if run.mix is not None and run.mix.site == "stage3":
                x = run.mix.blend(map, run.mix_plan)
                features = network.features_of(x)
            else:
                x, features = map, pooled
            return Output(network.head(features), features, x), (map, pooled)

    def _derive(self, run: Run, terms: Terms, leaves: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | None]:
        i, (map, pooled) = self.place[id(run)], leaves
        run.gradients.add(terms)
        if pooled.grad is None:
            self.trunk.feature_gradients[i].zero_()
        else:
            self.trunk.feature_gradients[i].copy_(pooled.grad)
        return run.gradients.take(), map.grad

    def _backward(
        self,
        side_by_side: SideBySide,
        of_maps: Sequence[Tensor | None],
        given: dict[str, Tensor],
        blended: dict[str, Any],
    ) -> None:
        trunk = self.trunk
        if all(gradient is None for gradient in of_maps):
            trunk.pooled_backward()
        else:
            trunk.end_backward(2, self._gradient_of_last_map(of_maps))
        for number, site in reversed(list(enumerate(given))):
            trunk.stage_backward(number, given[site], into=self.into.get(site))
            if site in self.mixing:
                side_by_side(lambda run, site=site: self._unmix(run, site, blended[site]), self.runs)  # type: ignore[misc]
                trunk.end_backward(number - 1, self.into[site])
        trunk.stem_backward()
        trunk.finish()

    def _gradient_of_last_map(self, of_maps: Sequence[Tensor | None]) -> Tensor:
        """From those of its means over pixels, and `of_maps` that come otherwise."""
        pixels = self.last_gradient[0, 0, :, :, 0].numel()
        self.last_gradient.copy_((self.trunk.feature_gradients / pixels)[:, :, None, None])
        for mine, gradient in zip(self.last_gradient, of_maps, strict=True):
            if gradient is not None:
                mine += gradient.permute(0, 2, 3, 1)
        return self.last_gradient

    def _unmix(self, run: Run, site: str, blended: list[tuple[Tensor, Tensor] | None]) -> None:
        """From the gradient of what was mixed to that of what it was mixed from, in place."""
        i = self.place[id(run)]
        if (pair := blended[i]) is not None:
            leaf, mixed = pair
            gradient = self.into[site][i].permute(0, 3, 1, 2)
            (back,) = torch.autograd.grad(mixed, leaf, gradient)
            self.into[site][i].copy_(back.permute(0, 2, 3, 1))

    def _move_weights(self, run: Run) -> None:
        """The weights of the head, and of the body where `descent` has not moved them."""
        if not self.descent.moves[self.place[id(run)]]:
            for convolution, norm in layers_of(run.network):
                for parameter in (convolution.weight, norm.weight, norm.bias):
                    parameter.grad = self.rows[parameter].gradient
        run.move_weights()
