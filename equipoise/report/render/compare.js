"use strict";
// Any two methods, drawn from the numbers in #data: scores seed by seed, their differences, and class by class.
(() => {
  const [WIDTH, LEFT, RIGHT, TOP, BOTTOM] = [372, 38, 364, 30, 208]; // a panel, as the other figures have it
  const COLOURS = 7;
  let data;

  // -- numbers and words ---------------------------------------------------------------------------------------------
  // All numbers are kept in the unit they are shown in.
  const times = (k) => (x) => (x === null ? null : k * x);
  const shown = (raw) => {
    const factor = times(raw.metric.share ? 100 : 1);
    for (const method of Object.values(raw.methods)) {
      method.scores = method.scores.map(factor);
      method.mean = method.mean.map(factor);
      method.classes = method.classes.map(times(100));
    }
    for (const [name, [n, mean, low, high, ...p]] of Object.entries(raw.pairs)) {
      raw.pairs[name] = [n, factor(mean), factor(low), factor(high), ...p];
    }
    return raw;
  };
  const fixed = (x, digits, sign) => {
    const rounded = Number(x.toFixed(digits)) || 0; // no minus zero
    return (sign && rounded > 0 ? "+" : "") + rounded.toFixed(digits).replace("-", "−");
  };
  const value = (x, sign = false) => fixed(x, data.metric.share ? 1 : 3, sign);
  const probability = (p) => (p < 0.001 ? "< 0.001" : `= ${p.toFixed(p >= 0.1 ? 2 : 3)}`);
  const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

  // -- drawing -------------------------------------------------------------------------------------------------------
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const [key, given] of Object.entries(attributes)) {
      element.setAttribute(key, typeof given === "number" ? Math.round(100 * given) / 100 : given);
    }
    element.append(...children);
    return element;
  };
  const tip = (words) => make("title", {}, words);
  const text = (words, x, y, style, anchor = "middle") => make("text", { class: style, x, y, "text-anchor": anchor }, words);
  const line = (x1, y1, x2, y2, style) => make("line", { class: style, x1, y1, x2, y2 });
  const look = (index) => (index === 0 ? "m0" : `m${((index - 1) % COLOURS) + 1}`);
  const series = (index, ...children) => make("g", { class: `series ${look(index)}` }, ...children);
  const dot = (index, cx, cy, r, words) => make("circle", { class: index ? "dot" : "hollow", cx, cy, r }, tip(words));
  const scale = (low, high, start, end) => (x) => start + ((x - low) / (high - low || 1)) * (end - start);
  const ticks = (low, high, wanted) => {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= 0.75 * rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
    return { at: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  };
  const limits = (values) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const pad = 0.06 * (high - low || Math.abs(high) || 1);
    return [low - pad, high + pad];
  };
  const rules = (y, low, high, sign) => {
    const { at, digits } = ticks(low, high, 5);
    return at.flatMap((t) => [
      line(LEFT, y(t), RIGHT, y(t), Math.abs(t) < 1e-12 && sign ? "zero" : "grid"),
      text(fixed(t, digits, sign && t !== 0), LEFT - 7, y(t) + 4, "tick", "end"),
    ]);
  };
  const figure = (title, words, height, parts) => {
    const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img", "aria-label": `${title}. ${words}` });
    svg.append(text(title, 0, 14, "panel", "start"), ...parts);
    const box = document.createElement("figure");
    box.append(svg);
    return box;
  };

  // -- the three panels ----------------------------------------------------------------------------------------------
  const scoresPanel = (one, two, pairs) => {
    const known = pairs.flatMap((pair) => [pair.first, pair.second]).concat(one.mean, two.mean).filter((x) => x !== null);
    const [low, high] = limits(known);
    const y = scale(low, high, BOTTOM, TOP);
    const columns = [LEFT + 90, RIGHT - 82];
    const parts = rules(y, low, high, false);
    for (const { seed, first, second } of pairs) {
      const winner = (second > first) === data.metric.up ? two : one;
      const words = `seed ${seed}: ${one.name} ${value(first)}, ${two.name} ${value(second)}`;
      parts.push(series(winner.index, make("line", { class: "join", x1: columns[0], y1: y(first), x2: columns[1], y2: y(second) }, tip(words))));
      parts.push(series(one.index, dot(one.index, columns[0], y(first), 3.4, words)), series(two.index, dot(two.index, columns[1], y(second), 3.4, words)));
    }
    [one, two].forEach((method, side) => {
      const x = columns[side] + (side ? 26 : -26);
      const [mean, from, to] = method.mean;
      const drawn = from === null ? [] : [make("path", { class: "range", d: `M${x},${y(from)}L${x},${y(to)}M${x - 4},${y(from)}h8M${x - 4},${y(to)}h8` })];
      parts.push(series(method.index, ...drawn, dot(method.index, x, y(mean), 5, `${method.name}: mean ${value(mean)}`)));
      parts.push(text(cut(method.name, 22), columns[side], BOTTOM + 18, "name small"));
    });
    const title = `${data.metric.title} of each seed${data.metric.share ? ", %" : ""}`;
    return figure(title, pairs.map((p) => `seed ${p.seed}: ${value(p.first)} and ${value(p.second)}`).join("; "), BOTTOM + 26, parts);
  };

  const differencePanel = (one, two, pairs, [, mean, from, to]) => {
    const gains = pairs.map((pair) => pair.second - pair.first);
    const [low, high] = limits([0, ...gains, ...[from, to].filter((x) => x !== null)]);
    const x = scale(low, high, LEFT + 22, RIGHT);
    const row = (BOTTOM - TOP) / (pairs.length + 1.6);
    const winner = (gain) => ((gain > 0) === data.metric.up ? two : one);
    const { at, digits } = ticks(low, high, 5);
    const parts = at.flatMap((t) => [
      line(x(t), TOP, x(t), BOTTOM, Math.abs(t) < 1e-12 ? "zero" : "grid"),
      text(fixed(t, digits, t !== 0), x(t), BOTTOM + 17, "tick"),
    ]);
    pairs.forEach((pair, place) => {
      const y = TOP + (place + 0.5) * row;
      const words = `seed ${pair.seed}: ${value(gains[place], true)}`;
      parts.push(series(winner(gains[place]).index, line(x(0), y, x(gains[place]), y, "join"), dot(winner(gains[place]).index, x(gains[place]), y, Math.min(3.4, row / 2.4), words)));
      if (row > 11) parts.push(text(pair.seed, LEFT + 8, y + 4, "tick", "end"));
    });
    const y = BOTTOM - 0.7 * row;
    const bar = from === null ? [] : [make("path", { class: "range", d: `M${x(from)},${y}L${x(to)},${y}M${x(from)},${y - 5}v10M${x(to)},${y - 5}v10` })];
    parts.push(text("mean", LEFT + 8, y + 4, "tick", "end"));
    parts.push(series(winner(mean).index, ...bar, dot(winner(mean).index, x(mean), y, 5, `mean ${value(mean, true)}`)));
    const title = `Difference of each seed, ${data.metric.unit}`;
    return figure(title, `${two.name} minus ${one.name}: mean ${value(mean, true)}`, BOTTOM + 26, parts);
  };

  const classPanel = (one, two) => {
    const gains = data.classes.map(([name, count], c) => ({
      name, count, gain: two.classes[c] - one.classes[c], known: Number.isFinite(one.classes[c]) && Number.isFinite(two.classes[c]),
    }));
    const known = gains.filter((each) => each.known);
    if (!known.length) return null;
    const [low, high] = limits([0, ...known.map((each) => each.gain)]);
    const y = scale(low, high, BOTTOM, TOP);
    const slot = (RIGHT - LEFT) / gains.length;
    const parts = rules(y, low, high, true);
    gains.forEach((each, c) => {
      if (!each.known) return;
      const [top, tall] = [Math.min(y(0), y(each.gain)), Math.abs(y(each.gain) - y(0))];
      const words = `${each.name} (${each.count} training images): ${fixed(each.gain, 1, true)} points`;
      const box = { class: "bar", x: LEFT + (c + 0.15) * slot, y: top, width: 0.7 * slot, height: Math.max(tall, 0.6) };
      parts.push(series((each.gain > 0 ? two : one).index, make("rect", box, tip(words))));
      if (Math.max(...gains.map((g) => g.name.length)) * 6.8 < slot) parts.push(text(each.name, LEFT + (c + 0.5) * slot, BOTTOM + 17, "tick"));
    });
    parts.push(text(`${gains[0].count} training images`, LEFT, BOTTOM + 34, "tick", "start"));
    parts.push(text(String(gains.at(-1).count), RIGHT, BOTTOM + 34, "tick", "end"));
    const said = known.map((each) => `${each.name} ${fixed(each.gain, 1, true)}`).join("; ");
    return figure("Difference of each class, points of accuracy", said, BOTTOM + 40, parts);
  };

  // -- the comparison ------------------------------------------------------------------------------------------------
  const found = (one, two) => {
    const there = data.pairs[`${one.index}-${two.index}`];
    if (there) return there;
    const [n, mean, low, high, p, all] = data.pairs[`${two.index}-${one.index}`];
    const minus = (x) => (x === null ? null : -x);
    return [n, minus(mean), minus(high), minus(low), p, all];
  };
  const sentence = (one, two, pairs, [n, mean, low, high, p, all]) => {
    const side = mean > 0 ? "above" : "below";
    const sign = mean > 0 ? 1 : -1;
    const same = pairs.filter((pair) => sign * (pair.second - pair.first) > 0).length;
    const [from, to] = [sign * low, sign * high].sort((a, b) => a - b);
    const interval = low === null ? "no interval from one pair" : `95 % interval ${value(from)} to ${value(to)}`;
    const size = mean === 0 ? `${two.name} and ${one.name} do not differ` : `${two.name} is ${value(Math.abs(mean))} ${data.metric.unit} ${side} ${one.name}`;
    const better = data.metric.up ? "higher" : "lower";
    return `On ${data.metric.title.toLowerCase()} (${better} is better), ${size} (${interval}; ${n} pairs, ${side} in ${same}). `
      + `For this pair alone p ${probability(p)}; with all corrections, as in the verdict, p ${probability(all)}.`;
  };
  const compare = (one, two) => {
    const [words, panels] = [document.getElementById("difference"), document.getElementById("pair")];
    panels.replaceChildren();
    if (one.index === two.index) {
      words.textContent = "Choose two different methods.";
      return;
    }
    const pairs = data.seeds.map((seed, i) => ({ seed, first: one.scores[i], second: two.scores[i] }))
      .filter((pair) => pair.first !== null && pair.second !== null);
    if (!pairs.length) {
      words.textContent = `${one.name} and ${two.name} share no finished seed.`;
      return;
    }
    const test = found(one, two);
    words.textContent = sentence(one, two, pairs, test);
    panels.append(scoresPanel(one, two, pairs), differencePanel(one, two, pairs, test), classPanel(one, two) ?? "");
  };

  addEventListener("DOMContentLoaded", () => {
    const [first, second] = [document.getElementById("first"), document.getElementById("second")];
    if (!first) return;
    data = shown(JSON.parse(document.getElementById("data").textContent));
    const method = (select) => ({ index: Number(select.value), ...data.methods[select.value] });
    const draw = () => compare(method(first), method(second));
    first.addEventListener("change", draw);
    second.addEventListener("change", draw);
    document.getElementById("swap").addEventListener("click", () => {
      [first.value, second.value] = [second.value, first.value];
      draw();
    });
    draw();
  });
})();
