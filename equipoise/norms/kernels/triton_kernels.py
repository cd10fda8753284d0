# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of ghost batch norm. Statistics and sums are float32, whatever the type of x.

Rows, for contiguous (N, C, H, W): one program has all values of one ghost and a few channels. It reads them from
memory once: they stay in registers (RESIDENT) or, when they are too many, come from the cache the second time, last
ones first.

Columns, for channels_last: a ghost is a matrix (examples · positions, C) of contiguous rows, cut into `splits` parts.
One kernel reduces each part, a second one combines the parts of its ghost and goes over the values again.
"""

import triton
import triton.language as tl

# -- rows ------------------------------------------------------------------------------------------------------------


@triton.jit
def _row_values(k, n, size, blocks, POSITIONS: tl.constexpr):
    """Values of a channel in ghost k; the last ghost has all that is left."""
    return tl.where(k == blocks - 1, n - k * size, size) * POSITIONS


@triton.jit
def _row_offsets(i, c, channels, POSITIONS: tl.constexpr):
    """Where value i of channel c is, from the first example of the ghost."""
    return (i // POSITIONS) * (channels * POSITIONS) + c * POSITIONS + i % POSITIONS


@triton.jit
def rows_forward(
    x, y, weight, bias, mean, var, n, channels, size, blocks, eps,
    POSITIONS: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    RESIDENT: tl.constexpr, CHANNELS: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[:, None]
    k = tl.program_id(1)
    count = _row_values(k, n, size, blocks, POSITIONS)
    start = (k * size).to(tl.int64) * channels * POSITIONS
    x += start
    y += start
    i = tl.arange(0, VALUES)[None, :]
    valid = c < channels
    if RESIDENT:
        mask = valid & (i < count)
        at = _row_offsets(i, c, channels, POSITIONS)
        v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        m = tl.sum(v, 1, keep_dims=True) / count
        d = tl.where(mask, v - m, 0.0)
        s = tl.sum(d * d, 1, keep_dims=True) / count
    else:
        # sums around a value of the channel itself: around 0 they would cancel where |mean| is large
        origin = tl.load(x + c * POSITIONS, mask=valid, other=0.0).to(tl.float32)
        first = tl.zeros([CHANNELS, VALUES], tl.float32)
        second = tl.zeros([CHANNELS, VALUES], tl.float32)
        for j in range(0, count, VALUES):
            mask = valid & (i + j < count)
            v = tl.load(x + _row_offsets(i + j, c, channels, POSITIONS), mask=mask, other=0.0).to(tl.float32)
            d = tl.where(mask, v - origin, 0.0)
            first += d
            second += d * d
        d = tl.sum(first, 1, keep_dims=True) / count
        m = origin + d
        s = tl.maximum(tl.sum(second, 1, keep_dims=True) / count - d * d, 0.0)
    tl.store(mean + k * channels + c, m, mask=valid)
    tl.store(var + k * channels + c, s, mask=valid)
    scale = 1.0 / tl.sqrt(s + eps)
    shift = tl.zeros_like(scale)
    if WEIGHT:
        scale *= tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    if BIAS:
        shift = tl.load(bias + c, mask=valid, other=0.0).to(tl.float32)
    if RESIDENT:
        tl.store(y + at, (v - m) * scale + shift, mask=mask)
    else:
        rounds = tl.cdiv(count, VALUES)
        for j in range(rounds):
            back = i + (rounds - 1 - j) * VALUES
            mask = valid & (back < count)
            at = _row_offsets(back, c, channels, POSITIONS)
            v = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(y + at, (v - m) * scale + shift, mask=mask)


@triton.jit
def rows_backward(
    grad, x, dx, weight, mean, var, d_weight, d_bias, n, channels, size, blocks, eps,
    POSITIONS: tl.constexpr, WEIGHT: tl.constexpr,
    RESIDENT: tl.constexpr, CHANNELS: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[:, None]
    k = tl.program_id(1)
    count = _row_values(k, n, size, blocks, POSITIONS)
    start = (k * size).to(tl.int64) * channels * POSITIONS
    grad += start
    x += start
    dx += start
    i = tl.arange(0, VALUES)[None, :]
    valid = c < channels
    m = tl.load(mean + k * channels + c, mask=valid, other=0.0)
    r = 1.0 / tl.sqrt(tl.load(var + k * channels + c, mask=valid, other=1.0) + eps)
    if RESIDENT:
        mask = valid & (i < count)
        at = _row_offsets(i, c, channels, POSITIONS)
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        h = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r
        total = tl.sum(g, 1, keep_dims=True)
        dot = tl.sum(g * h, 1, keep_dims=True)
    else:
        sum_g = tl.zeros([CHANNELS, VALUES], tl.float32)
        sum_h = tl.zeros([CHANNELS, VALUES], tl.float32)
        for j in range(0, count, VALUES):
            mask = valid & (i + j < count)
            at = _row_offsets(i + j, c, channels, POSITIONS)
            g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
            h = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r
            sum_g += g
            sum_h += g * h
        total = tl.sum(sum_g, 1, keep_dims=True)
        dot = tl.sum(sum_h, 1, keep_dims=True)
    tl.store(d_weight + k * channels + c, dot, mask=valid)
    tl.store(d_bias + k * channels + c, total, mask=valid)
    scale = r
    if WEIGHT:
        scale *= tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    total /= count
    dot /= count
    if RESIDENT:
        tl.store(dx + at, (g - total - h * dot) * scale, mask=mask)
    else:
        rounds = tl.cdiv(count, VALUES)
        for j in range(rounds):
            back = i + (rounds - 1 - j) * VALUES
            mask = valid & (back < count)
            at = _row_offsets(back, c, channels, POSITIONS)
            g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
            h = (tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m) * r
            tl.store(dx + at, (g - total - h * dot) * scale, mask=mask)


# -- columns ---------------------------------------------------------------------------------------------------------


@triton.jit
def _part(k, split, n, size, blocks, positions, rows_each):
    """First and last row of a part of ghost k, the last one excluded; parts at the end may be empty."""
    end = tl.where(k == blocks - 1, n, (k + 1) * size).to(tl.int64) * positions
    start = (k * size).to(tl.int64) * positions + split * rows_each
    return tl.minimum(start, end), tl.minimum(start + rows_each, end)


@triton.jit
def columns_moments(
    x, part_mean, part_square, n, channels, size, blocks, positions, rows_each, splits,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Mean and Σ (x - mean)² of each part."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    split, k = tl.program_id(1), tl.program_id(2)
    start, end = _part(k, split, n, size, blocks, positions, rows_each)
    r = tl.arange(0, ROWS)[:, None]
    valid = c < channels
    x += start * channels
    count = (end - start).to(tl.int32)
    origin = tl.load(x + c, mask=valid & (count > 0), other=0.0).to(tl.float32)
    first = tl.zeros([ROWS, CHANNELS], tl.float32)
    second = tl.zeros([ROWS, CHANNELS], tl.float32)
    for j in range(0, count, ROWS):
        mask = valid & (r + j < count)
        v = tl.load(x + (r + j) * channels + c, mask=mask, other=0.0).to(tl.float32)
        d = tl.where(mask, v - origin, 0.0)
        first += d
        second += d * d
    total = tl.sum(first, 0, keep_dims=True)
    d = total / tl.maximum(count, 1)
    at = (k * splits + split) * channels + c
    tl.store(part_mean + at, origin + d, mask=valid)
    tl.store(part_square + at, tl.maximum(tl.sum(second, 0, keep_dims=True) - total * d, 0.0), mask=valid)


@triton.jit
def columns_forward(
    x, shortcut, y, weight, bias, part_mean, part_square, mean, var,
    n, channels, size, blocks, positions, rows_each, splits, eps,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """y = x̂ γ + β, plus the shortcut, then the ReLU, where these are asked for."""
    # from the end: what was read last is still in the cache
    split, k = splits - 1 - tl.program_id(1), blocks - 1 - tl.program_id(2)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    valid = c < channels
    p = tl.arange(0, SPLITS)[:, None]
    first, last = _part(k, p, n, size, blocks, positions, rows_each)
    size_p = tl.where(p < splits, (last - first).to(tl.float32), 0.0)
    at = (k * splits + p) * channels + c
    mean_p = tl.load(part_mean + at, mask=valid & (p < splits), other=0.0)
    square_p = tl.load(part_square + at, mask=valid & (p < splits), other=0.0)
    values = tl.sum(size_p, 0, keep_dims=True)
    m = tl.sum(mean_p * size_p, 0, keep_dims=True) / values
    s = tl.sum(square_p + size_p * (mean_p - m) * (mean_p - m), 0, keep_dims=True) / values
    if split == 0:
        tl.store(mean + k * channels + c, m, mask=valid)
        tl.store(var + k * channels + c, s, mask=valid)
    scale, shift = _affine(weight, bias, c, 1.0 / tl.sqrt(s + eps), valid, WEIGHT, BIAS)
    start, end = _part(k, split, n, size, blocks, positions, rows_each)
    offset = start * channels
    count = (end - start).to(tl.int32)
    r = tl.arange(0, ROWS)[:, None]
    rounds = tl.cdiv(count, ROWS)
    for j in range(rounds):
        back = r + (rounds - 1 - j) * ROWS
        mask = valid & (back < count)
        where = offset + back * channels + c
        out = (tl.load(x + where, mask=mask, other=0.0).to(tl.float32) - m) * scale + shift
        if SHORTCUT:
            out += tl.load(shortcut + where, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            out = tl.where(out < 0, 0.0, out)  # a NaN stays one
        tl.store(y + where, out, mask=mask)


@triton.jit
def columns_sums(
    grad, x, y, behind, weight, bias, mean, var, part_dot, part_total,
    n, channels, size, blocks, positions, rows_each, splits, eps,
    SHORTCUT: tl.constexpr, RELU: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Σ dy·x̂ and Σ dy of each part, dy being the gradient behind the ReLU.

    Where there was a shortcut that is its gradient too, and is written to `behind`.
    """
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    split, k = tl.program_id(1), tl.program_id(2)
    start, end = _part(k, split, n, size, blocks, positions, rows_each)
    r = tl.arange(0, ROWS)[:, None]
    valid = c < channels
    offset = start * channels
    count = (end - start).to(tl.int32)
    m = tl.load(mean + k * channels + c, mask=valid, other=0.0)
    rstd = 1.0 / tl.sqrt(tl.load(var + k * channels + c, mask=valid, other=1.0) + eps)
    scale, shift = _affine(weight, bias, c, rstd, valid, WEIGHT, BIAS)
    sum_g = tl.zeros([ROWS, CHANNELS], tl.float32)
    sum_d = tl.zeros([ROWS, CHANNELS], tl.float32)
    for j in range(0, count, ROWS):
        mask = valid & (r + j < count)
        at = offset + (r + j) * channels + c
        g = tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
        d = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - m
        if SHORTCUT:
            g = tl.where(tl.load(y + at, mask=mask, other=0.0) > 0, g, 0.0)
            tl.store(behind + at, g, mask=mask)
        elif RELU:
            g = tl.where(d * scale + shift > 0, g, 0.0)
        sum_g += g
        sum_d += g * d
    at = (k * splits + split) * channels + c
    tl.store(part_dot + at, tl.sum(sum_d, 0, keep_dims=True) * rstd, mask=valid)
    tl.store(part_total + at, tl.sum(sum_g, 0, keep_dims=True), mask=valid)


@triton.jit
def columns_backward(
    grad, x, dx, weight, bias, mean, var, part_dot, part_total, d_weight, d_bias,
    n, channels, size, blocks, positions, rows_each, splits, eps, RELU: tl.constexpr,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """dx; and, in programs of their own, the sums of all parts, which are the gradients of γ and β.

    `grad` is before the ReLU where there is one to go through (RELU), else behind it.
    """
    split, k = splits - 1 - tl.program_id(1), blocks - tl.program_id(2)
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    if k == blocks:
        if split == 0:
            _store_totals(part_dot, d_weight, c, channels, blocks * splits, SPLITS, CHANNELS)
            _store_totals(part_total, d_bias, c, channels, blocks * splits, SPLITS, CHANNELS)
    else:
        valid = c < channels
        p = tl.arange(0, SPLITS)[:, None]
        at = (k * splits + p) * channels + c
        values = (tl.where(k == blocks - 1, n - k * size, size) * positions).to(tl.float32)
        dot = tl.sum(tl.load(part_dot + at, mask=valid & (p < splits), other=0.0), 0, keep_dims=True) / values
        total = tl.sum(tl.load(part_total + at, mask=valid & (p < splits), other=0.0), 0, keep_dims=True) / values
        m = tl.load(mean + k * channels + c, mask=valid, other=0.0)
        rstd = 1.0 / tl.sqrt(tl.load(var + k * channels + c, mask=valid, other=1.0) + eps)
        scale, shift = _affine(weight, bias, c, rstd, valid, WEIGHT, BIAS)
        start, end = _part(k, split, n, size, blocks, positions, rows_each)
        offset = start * channels
        count = (end - start).to(tl.int32)
        r = tl.arange(0, ROWS)[:, None]
        rounds = tl.cdiv(count, ROWS)
        for j in range(rounds):
            back = r + (rounds - 1 - j) * ROWS
            mask = valid & (back < count)
            where = offset + back * channels + c
            g = tl.load(grad + where, mask=mask, other=0.0).to(tl.float32)
            d = tl.load(x + where, mask=mask, other=0.0).to(tl.float32) - m
            if RELU:
                g = tl.where(d * scale + shift > 0, g, 0.0)
            tl.store(dx + where, (g - total - d * rstd * dot) * scale, mask=mask)


@triton.jit
def _affine(weight, bias, c, rstd, valid, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    """γ / deviation, and β."""
    scale = rstd
    shift = tl.zeros_like(rstd)
    if WEIGHT:
        scale *= tl.load(weight + c, mask=valid, other=0.0).to(tl.float32)
    if BIAS:
        shift = tl.load(bias + c, mask=valid, other=0.0).to(tl.float32)
    return scale, shift


@triton.jit
def _store_totals(parts, out, c, channels, count, PARTS: tl.constexpr, CHANNELS: tl.constexpr):
    p = tl.arange(0, PARTS)[:, None]
    total = tl.zeros([PARTS, CHANNELS], tl.float32)
    for j in range(0, count, PARTS):
        total += tl.load(parts + (p + j) * channels + c, mask=(c < channels) & (p + j < count), other=0.0)
    tl.store(out + c, tl.sum(total, 0, keep_dims=True), mask=c < channels)
