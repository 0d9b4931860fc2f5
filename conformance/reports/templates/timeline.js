"use strict";
// The picture of one group: a lane for the coordinator and for each member, a bar for each resource that it owns.
// `show` takes the document that reports/page.py describes. Names from a trace reach the page as text only.

const SVG = "http://www.w3.org/2000/svg";
const GUTTER = 150, HEAD = 24, ROW = 17, MARKS = 19, PAD = 5, PIN = 17, MOST_ROWS = 8, GLYPH = 11, FEW_LANES = 12;
const HUES = ["#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#b8b0a2", "#8fd3c1", "#c5a3ff"];
const LIGHT_TEXT = new Set(["#009e73", "#0072b2"]);

// Each mark: path within -6..6, what it means, its class, and its rank where there is room for one only.
const GLYPHS = {
  assigned: ["M-5,-4 H5 L0,5 Z", "takes ownership (onPartitionsAssigned has returned)", "solid", 8],
  revoked: ["M-5,4 H5 L0,-5 Z", "gives up in order (onPartitionsRevoked has returned)", "", 8],
  lost: ["M-4.5,-4.5 L4.5,4.5 M4.5,-4.5 L-4.5,4.5", "finds that it has lost it (onPartitionsLost)", "grave", 12],
  refused: ["M5,0 A5,5 0 1 1 -5,0 A5,5 0 1 1 5,0 M-3.5,3.5 L3.5,-3.5", "a request is refused: fenced, or of an old generation", "grave", 10],
  expired: ["M-4,-5 H4 L-4,5 H4 Z", "a timer of the coordinator removes the member", "grave", 13],
  delay: ["M5,0 A5,5 0 1 1 -5,0 A5,5 0 1 1 5,0 M0,-3 V0 L2.5,1.5", "Connect: lost work is withheld for a delay", "", 9],
  decide: ["M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z", "the leader's assignment", "solid", 7],
  given: ["M-5,0 H5 M1.5,-3.5 L5,0 L1.5,3.5", "the coordinator answers with the member's share", "", 3],
  join: ["M4,0 A4,4 0 1 1 -4,0 A4,4 0 1 1 4,0", "asks to join (JoinGroup)", "", 2],
  leave: ["M5,0 H-5 M-1.5,-3.5 L-5,0 L-1.5,3.5", "leaves (LeaveGroup)", "", 6],
  commit: ["M-4.5,0 L-1.5,3.5 L4.5,-3.5", "commits", "", 1],
  ended: ["M-4,-4 H4 V4 H-4 Z M-4,-4 L4,4 M4,-4 L-4,4", "the process ended", "", 11],
  replaced: ["M-5,-2 H3 L0,-5 M5,2 H-3 L0,5", "a new member id takes a static member's place", "", 9],
  rebalance: ["M4.5,-1 A4.6,4.6 0 1 0 3.5,3.2 M5,-5 V-1 H1", "a rebalance begins", "", 4],
  told: ["M-4,-1 L0,3 L4,-1", "learns that a rebalance has begun, or which id it has", "", 1],
  generation: ["M-4,5 V-5 L4.5,-2 L-4,1", "a generation starts", "solid", 5],
  admitted: ["M4,0 A4,4 0 1 1 -4,0 A4,4 0 1 1 4,0", "is in the generation (JoinGroup is answered)", "solid", 2],
  stored: ["M-5,-4 H5 V4 H-5 Z M0,-2.5 L2.5,0 L0,2.5 L-2.5,0 Z", "the generation's assignment is stored", "", 6],
  load: ["M-4,-5 H4 V5 H-4 Z M-1.5,-2 H1.5 M-1.5,1 H1.5", "another coordinator loads the group", "", 9],
  gap: ["M-5,0 H-3 M-1,0 H1 M3,0 H5", "evidence is missing here", "grave", 9],
  other: ["M1.5,0 A1.5,1.5 0 1 1 -1.5,0 A1.5,1.5 0 1 1 1.5,0", "anything else", "solid", 0],
};
const SEVERITIES = { error: "error", warning: "warning", info: "note" };
const PHASES = { preparing: "PreparingRebalance", completing: "CompletingRebalance", stable: "Stable", empty: "Empty" };
const STATES = { believed: "believes that it owns", given: "was given", stale: "still believes, but is fenced" };

function element(name, attributes = {}, text = undefined, space = null) {
  const made = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const html = (name, attributes, text) => element(name, attributes, text);
const svg = (name, attributes, text) => element(name, attributes, text, SVG);
/** The steps that a finding rests on. */
const placesOf = finding => finding.places.filter(each => each !== null);
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));

function cut(text, room, each = 6.3) {
  const fits = Math.floor(room / each);
  return text.length <= fits ? text : fits < 3 ? "" : text.slice(0, fits - 1) + "…";
}

/** Names of at most `fits` characters, without what all long ones begin or end with, or else without their middle. */
function short(names, fits) {
  const long = names.filter(each => each.length > fits);
  let head = long[0] ?? "", tail = head;
  for (const each of long) {
    while (!each.startsWith(head)) head = head.slice(0, -1);
    while (!each.endsWith(tail)) tail = tail.slice(1);
  }
  if (long.length < 2 || head.length < 4) head = "";
  if (long.length < 2 || tail.length < 4) tail = "";
  return names.map(each => {
    if (each.length <= fits) return each;
    const own = each.slice(head.length, Math.max(each.length - tail.length, head.length + 1)), spare = fits - own.length - (tail ? 2 : 1);
    const name = `${head && spare >= 0 ? `${head.slice(0, spare)}…` : ""}${own}${tail && "…"}`;
    return name.length <= fits ? name : `${name.slice(0, Math.ceil(fits * .4))}…${name.slice(name.length - Math.floor(fits * .6) + 1)}`;
  });
}

/** A resource's name; where there is little room, its end: ``task:sink-0`` as ``sink-0`` or ``…k-0``. */
function cutResource(text, room, each = 6.3) {
  if (text.length * each <= room) return text;
  const name = text.slice(text.indexOf(":") + 1), fits = Math.floor(room / each);
  return name.length <= fits ? name : fits < 3 ? "" : `…${name.slice(name.length - fits + 1)}`;
}

/** What is too narrow to be drawn each by itself: one path for a row. */
const thin = (y, buckets, height) => [...buckets].map(each => `M${each * 3},${y} h2.5 v${height} h-2.5 Z`).join("");

class Timeline {
  /** `root` is emptied; `onStep(step)` and `onFinding(index)` tell what was chosen, `onPast(by)` that one wants to go beyond the last or first finding. */
  constructor(root, { onStep = () => {}, onFinding = () => {}, onPast = () => {} } = {}) {
    this.onStep = onStep;
    this.onFinding = onFinding;
    this.onPast = onPast;
    this.clock = false;
    this.expanded = new Set();
    this.filters = { member: "", resource: "", rule: "" };
    this.frame = 0;
    root.classList.add("tl");
    root.replaceChildren();
    this.root = root;
    this.tools = root.appendChild(this.#toolbar());
    this.lanes = root.appendChild(html("div", { class: "tl-lanes", tabindex: "0", role: "group", "aria-label": "Timeline: arrow keys go from step to step" }));
    this.map = root.appendChild(html("div", { class: "tl-map", "aria-hidden": "true" }));
    this.tip = root.appendChild(html("div", { class: "tl-tip", hidden: "" }));
    this.panel = root.appendChild(html("section", { class: "tl-step", "aria-live": "polite", "aria-label": "Step" }));
    this.legend = root.appendChild(this.#legend());
    this.#listen();
  }

  /**
   * Draw `doc`. `textOf(step)` gives (a promise of) [sentence, [[place, line], ...]]; without `step` or `finding` all is in view.
   * `before`, `after`: there are findings beyond the first and the last one.
   */
  show(doc, { step = null, finding = null, textOf = null, before = false, after = false } = {}) {
    this.before = before;
    this.after = after;
    this.doc = doc;
    this.textOf = textOf ?? (at => doc.text[at]);
    this.count = doc.steps.lane.length;
    this.step = null;
    this.finding = null;
    this.times = this.#times();
    this.telling = doc.findings.map(each => this.#telling(each, placesOf(each)));
    this.names = short(doc.lanes.map(each => each.name), Math.floor((GUTTER - 20) / 7));
    const options = [...new Set(doc.findings.map(each => each.rule))].sort();
    this.rule.replaceChildren(html("option", { value: "" }, "every rule"), ...options.map(each => html("option", { value: each }, each)));
    this.rule.parentElement.hidden = options.length < 2;
    this.filters.rule = "";
    this.toggle.disabled = !doc.steps.ts.some(each => each !== null);
    this.#lists();
    for (const part of [this.tools, this.lanes, this.map, this.legend]) part.hidden = !this.count;
    this.#fit();
    if (finding !== null) this.goTo(finding);
    else if (step !== null) this.select(step);
    else this.#panel();
    this.draw();
  }

  /** Show finding `index` with what it rests on. */
  goTo(index) {
    this.finding = index;
    const finding = this.doc.findings[index];
    const places = placesOf(finding);
    if (places.length) this.#around(...this.#extent(finding, places));
    else {
      const first = this.doc.generations.find(each => each[1] === finding.epoch && each[2] >= (finding.generation ?? 0));
      this.#around(first ? first[0] : 0, first ? first[0] : this.count - 1);
    }
    this.onFinding(index);
    if (places.length) this.select(this.telling[index], false);
    this.#reveal(finding.members);
    this.onStep(this.step);
    this.draw();
  }

  /** The step that shows it best: the last one that it rests on while several own what it is about, else where that begins, else the last one. */
  #telling(finding, places) {
    const least = Math.min(...places), most = Math.max(...places);
    const shared = this.doc.twice.filter(([what, from, to]) => finding.resources.includes(what) && from <= most && to >= least);
    const inside = places.filter(place => shared.some(([, from, to]) => from <= place && place < to));
    return inside.length ? Math.max(...inside) : shared.length ? clamp(shared[0][1], 0, this.count - 1) : most;
  }

  /** Select a step, and bring it into view. */
  select(step, tell = true) {
    this.step = clamp(step, 0, Math.max(0, this.count - 1));
    const at = this.#at(this.step), width = this.to - this.from;
    if (at < this.from + width * .04 || at > this.to - width * .04) this.#view(at - width / 2, at + width / 2);
    this.#panel();
    if (tell) this.onStep(this.step);
    this.draw();
  }

  /** The findings that the rule filter leaves, by their place in the document, in the order of the timeline. */
  chosen() {
    return this.doc.findings.map((each, index) => [each, index])
      .filter(([each]) => !this.filters.rule || each.rule === this.filters.rule)
      .sort(([a], [b]) => (a.severity === "info") - (b.severity === "info") || (a.places[0] ?? 0) - (b.places[0] ?? 0))
      .map(([, index]) => index);
  }

  first() {
    const chosen = this.chosen();
    if (chosen.length) this.goTo(["error", "warning", "info"].flatMap(severity => chosen.filter(index => this.doc.findings[index].severity === severity))[0]);
  }

  last() {
    const chosen = this.chosen();
    if (chosen.length) this.goTo(chosen[chosen.length - 1]);
  }

  next(by = 1) {
    const chosen = this.chosen(), now = chosen.indexOf(this.finding), to = now < 0 ? 0 : now + by;
    if (to >= 0 && to < chosen.length) this.goTo(chosen[to]);
    else this.onPast(by);
  }

  zoom(factor, around = null) {
    const middle = around ?? (this.step !== null ? this.#at(this.step) : (this.from + this.to) / 2);
    this.#view(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
    this.draw();
  }

  fit() { this.#fit(); this.draw(); }

  setClock(clock) {
    const middle = this.#near((this.from + this.to) / 2), share = (this.to - this.from) / this.#length();
    this.clock = clock;
    this.toggle.setAttribute("aria-pressed", String(clock));
    const length = this.#length() * share, at = this.#at(middle);
    this.#view(at - length / 2, at + length / 2);
    if (this.finding !== null) {
      const finding = this.doc.findings[this.finding], places = placesOf(finding);
      if (places.length) this.#around(...this.#extent(finding, places));
    }
    this.draw();
  }

  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.drawNow(); });
  }

  // Places along the axis: the number of a step, or its time in microseconds.

  #times() {
    const times = [];
    let last = this.doc.steps.ts.find(each => each !== null) ?? 0;
    let least = Infinity, most = -Infinity;
    for (const ts of this.doc.steps.ts) {
      times.push(last = ts ?? last);
      least = Math.min(least, last);
      most = Math.max(most, last);
    }
    const pad = Math.max(1000, (most - least) * .01);
    this.era = [least - pad, most + pad];
    return times;
  }

  #at(step) {
    if (!this.clock) return step;
    return step < this.count ? this.times[step] : this.times[this.count - 1] + this.#length() * .01;
  }

  #near(at) {
    if (!this.clock) return clamp(Math.round(at), 0, this.count - 1);
    let best = 0;
    for (let step = 1; step < this.count; step++) if (Math.abs(this.times[step] - at) < Math.abs(this.times[best] - at)) best = step;
    return best;
  }

  /** The steps in view. */
  *#visible() {
    const [first, last] = this.clock ? [0, this.count - 1] : [Math.max(0, Math.ceil(this.from)), Math.min(this.count - 1, Math.floor(this.to))];
    for (let step = first; step <= last; step++) {
      const at = this.#at(step);
      if (at >= this.from && at <= this.to) yield step;
    }
  }

  #bounds() {
    return this.clock ? this.era : [-.7, Math.max(1, this.count) + .2];
  }

  #length() { const [least, most] = this.#bounds(); return most - least; }

  #fit() { [this.from, this.to] = this.#bounds(); }

  #view(from, to) {
    const [least, most] = this.#bounds();
    const length = clamp(to - from, Math.min(this.clock ? 2000 : 6, most - least), most - least);
    this.from = clamp((from + to - length) / 2, least, most - length);
    this.to = this.from + length;
  }

  /** The steps that a finding rests on, and what its resources had several owners for around them. */
  #extent(finding, places) {
    let first = Math.min(...places), last = Math.max(...places);
    for (const [resource, from, to] of this.doc.twice) {
      if (finding.resources.includes(resource) && from <= last && to >= first) {
        first = Math.max(Math.min(first, from - 7), first - 60);
        last = Math.min(Math.max(last, to), last + 60);
      }
    }
    return [Math.max(0, first), Math.min(last, this.count - 1)];
  }

  #around(first, last) {
    if (!this.clock) {
      const margin = clamp((last - first) * .25, 4, 40);
      this.#view(first - margin, Math.max(last + margin, first + 24 - margin));
      return;
    }
    const a = Math.min(this.#at(first), this.#at(last)), b = Math.max(this.#at(first), this.#at(last));
    const margin = Math.max((b - a) * .35, 500_000);
    this.#view(a - margin, b + margin);
  }

  #reveal(lanes) {
    const first = this.placed?.find(each => lanes.includes(each.lane));
    if (first && (first.top < this.lanes.scrollTop || first.top > this.lanes.scrollTop + this.lanes.clientHeight - 80)) {
      this.lanes.scrollTop = first.top - 40;
    }
  }

  // What there is.

  #hue(resource) { return HUES[resource % HUES.length]; }

  #shows(resource) { return !this.filters.resource || this.doc.resources[resource].toLowerCase().includes(this.filters.resource); }

  #showsLane(lane) {
    const { name, member } = this.doc.lanes[lane];
    return !this.filters.member || name.toLowerCase().includes(this.filters.member) || member.toLowerCase().includes(this.filters.member);
  }

  /** The lanes in view from top to bottom, each with the row of every resource. */
  #layout() {
    const { doc } = this, found = this.finding === null ? null : doc.findings[this.finding];
    const wanted = new Set(found ? found.resources : []), involved = new Set(found?.members.length ? [...found.members, ...placesOf(found).map(each => doc.steps.lane[each])] : []);
    const named = involved.size > 0;
    const rows = doc.lanes.map(() => new Map()), busy = doc.lanes.map(() => false);
    const { lane, resource, first, last } = doc.bars;
    for (let i = 0; i < lane.length; i++) {
      if (this.#at(last[i]) < this.from || this.#at(first[i]) > this.to || !this.#shows(resource[i])) continue;
      busy[lane[i]] = true;
      rows[lane[i]].set(resource[i], true);
      if (named && wanted.has(resource[i])) involved.add(lane[i]);
    }
    for (const [what, from, to, several] of doc.twice) {
      if (this.#at(to) < this.from || this.#at(from) > this.to || !this.#shows(what)) continue;
      for (const each of several) { busy[each] = true; rows[each].set(what, true); }
    }
    for (const step of this.#visible()) if (doc.steps.lane[step] >= 0) busy[doc.steps.lane[step]] = true;
    const many = doc.lanes.length > FEW_LANES, placed = [];
    const pinned = new Set(found ? placesOf(found).map(each => doc.steps.lane[each]) : []);
    let top = HEAD + (this.clock ? 14 : 0);
    const add = (lane, held, most, idle = false) => {
      const order = [...held.keys()].sort((a, b) => wanted.has(b) - wanted.has(a) || a - b);
      const shown = new Map(order.slice(0, order.length > most ? most - 1 : most).map((each, row) => [each, row]));
      const more = order.length - shown.size;
      const height = idle ? 24 : Math.max(40, PAD * 2 + Math.max(1, shown.size + (more ? 1 : 0)) * ROW + (lane === "nobody" ? 0 : MARKS)) + (pinned.has(lane) ? PIN : 0);
      placed.push({ lane, top, height, rows: shown, more, total: order.length, dim: named && lane >= 0 && !involved.has(lane) });
      top += height;
    };
    add(-1, new Map([[-1, true]]), 1);
    this.hidden = 0;
    for (let each = 0; each < doc.lanes.length; each++) {
      if (!this.#showsLane(each)) continue;
      if (many && !busy[each] && !involved.has(each)) this.hidden++;
      else add(each, rows[each], this.expanded.has(each) ? 1000 : MOST_ROWS, !busy[each] || (many && !rows[each].size));
    }
    if (doc.unowned) {
      const held = new Map();
      for (const [resource, first, last] of doc.unowned) {
        if (this.#shows(resource) && this.#at(last) >= this.from && this.#at(first) <= this.to) held.set(resource, true);
      }
      if (held.size) add("nobody", held, this.expanded.has("nobody") ? 1000 : MOST_ROWS);
    }
    return [placed, top];
  }

  // Drawing.

  /** Draw at once, not with the next frame. */
  drawNow() {
    const { doc } = this;
    if (!doc) return;
    const width = Math.max(420, this.lanes.clientWidth), room = width - GUTTER - 8;
    const x = at => GUTTER + (at - this.from) / (this.to - this.from) * room;
    const [placed, height] = this.#layout();
    this.placed = placed;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": this.#described() });
    picture.append(this.#patterns());
    const seen = { top: this.lanes.scrollTop - 400, bottom: this.lanes.scrollTop + this.lanes.clientHeight + 400 };
    const visible = window.matchMedia("print").matches ? placed : placed.filter(each => each.top + each.height >= seen.top && each.top <= seen.bottom);
    this.#generations(picture, x, width, height);
    const body = svg("g", { "clip-path": "url(#tl-clip)" });
    picture.append(svg("clipPath", { id: "tl-clip" }));
    picture.lastChild.append(svg("rect", { x: GUTTER, y: 0, width: room + 8, height }));
    for (const each of placed) picture.append(svg("line", { class: "rule", x1: 0, x2: width, y1: each.top, y2: each.top }));
    for (const each of visible) this.#names(picture, each);
    const by = new Map(visible.map(each => [each.lane, each]));
    this.#phases(body, by.get(-1), x);
    const labels = this.#bars(body, by, x, room), every = new Map(placed.map(each => [each.lane, each]));
    this.#nobody(body, by.get("nobody"), x);
    this.#twice(body, every, x);
    body.append(...labels);
    this.#marks(body, by, x, room);
    if (this.step !== null) {
      const at = x(this.#at(this.step));
      body.append(svg("line", { class: "cursor", x1: at, x2: at, y1: 0, y2: height }));
    }
    this.#pins(body, every, x, height);
    picture.append(body);
    this.lanes.replaceChildren(picture);
    this.#overview(width);
    const chosen = this.chosen(), now = chosen.indexOf(this.finding), severities = chosen.map(each => SEVERITIES[doc.findings[each].severity]);
    const kind = now < 0 ? null : severities[now], alike = severities.filter(each => each === kind).length;
    this.counted.textContent = !chosen.length ? "no findings" : now < 0 ? `${chosen.length} finding${chosen.length > 1 ? "s" : ""}`
      : `${kind} ${severities.slice(0, now + 1).filter(each => each === kind).length} of ${alike}${alike < chosen.length ? `, ${chosen.length} findings` : ""}`;
    const worst = chosen.map(each => doc.findings[each].severity);
    this.jump.textContent = worst.includes("error") ? "First violation" : worst.includes("warning") ? "First warning" : "First finding";
    this.jump.classList.toggle("first", worst.includes("error"));
    for (const [button, off] of [[this.jump, !chosen.length], [this.back, now <= 0 && !this.before], [this.forth, (!chosen.length || now === chosen.length - 1) && !this.after]]) button.disabled = off;
    const nothing = !placed.some(each => each.lane >= 0) ? "no member matches" : this.filters.resource && !placed.some(each => each.rows.size && each.lane !== -1) ? "no resource matches here" : "";
    this.dropped.textContent = nothing || this.hidden ? nothing || `${this.hidden} members with nothing here are hidden` : "";
  }

  #described() {
    const { doc } = this;
    return `Group ${doc.group}: ${doc.lanes.length} members, ${this.count} steps, ${doc.generations.length} generations, ${doc.findings.length} findings`;
  }

  #patterns() {
    const defs = svg("defs");
    const hatch = (id, lines, size = 6) => {
      const made = svg("pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" });
      for (const [path, stroke, wide] of lines) made.append(svg("path", { d: path, stroke, "stroke-width": wide, fill: "none" }));
      defs.append(made);
    };
    hatch("tl-twice", [["M0,6 L6,0 M-1,1 L1,-1 M5,7 L7,5", "#d55e00", 2], ["M0,0 L6,6", "#d55e00", 1]]);
    hatch("tl-preparing", [["M0,6 L6,0 M-1,1 L1,-1 M5,7 L7,5", "var(--warn)", 2]]);
    hatch("tl-completing", [["M0,3 H6", "var(--note)", 2]]);
    return defs;
  }

  #generations(picture, x, width, height) {
    const { generations } = this.doc, epochs = generations.some(each => each[1] > 0);
    let written = -Infinity;
    generations.forEach(([place, epoch, generation], index) => {
      const next = generations[index + 1];
      const left = Math.max(GUTTER, x(this.#at(place))), right = Math.min(width, next ? x(this.#at(next[0])) : width);
      if (right <= GUTTER || left >= width) return;
      if (right - left >= 2) picture.append(svg("rect", { class: `gen${index % 2 ? " odd" : ""}`, x: left, y: 0, width: right - left, height, "data-step": place }));
      const room = right - left - 8, full = `${epochs ? `epoch ${epoch}, ` : ""}generation ${generation}`;
      const text = full.length * 6.6 <= room ? full : String(generation);
      if (text !== full && text.length * 7 > room && left < written) return;
      picture.append(svg("text", { x: left + 5, y: 16 }, text));
      written = left + text.length * 7 + 12;
    });
    if (this.clock) this.#ticks(picture, x, width);
  }

  #ticks(picture, x, width) {
    const second = 1e6, steps = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
    const wanted = (this.to - this.from) / second / Math.max(2, (width - GUTTER) / 110);
    const step = (steps.find(each => each >= wanted) ?? 86400) * second;
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      picture.append(svg("text", { class: "small", x: x(at) + 2, y: HEAD + 9 }, this.#time(at, step >= second ? 0 : 3)));
      picture.append(svg("line", { class: "rule", x1: x(at), x2: x(at), y1: HEAD, y2: HEAD + 12 }));
    }
  }

  #names(picture, { lane, top, height, total, more, dim }) {
    const { doc } = this;
    const name = lane === -1 ? "coordinator" : lane === "nobody" ? "nobody" : this.names[lane];
    const group = picture.appendChild(svg("g", dim ? { class: "dim" } : {}));
    const text = group.appendChild(svg("text", { class: "name", x: 10, y: top + 18 }, name));
    const full = lane === -1 ? "the group coordinator" : lane === "nobody" ? "resources that no member owns" : doc.lanes[lane].member;
    text.append(svg("title", {}, full));
    const note = lane === -1 ? "" : lane === "nobody" ? "owns these" : doc.lanes[lane].note;
    if (note && height > 24) group.append(svg("text", { class: "small", x: 10, y: top + 33 }, cut(note, GUTTER - 16, 5.6)));
    if (total > MOST_ROWS) {
      const label = more ? `show ${more} more` : "show fewer";
      const button = picture.appendChild(svg("text", { class: "small", x: 10, y: top + 47, style: "cursor:pointer;text-decoration:underline", tabindex: "0", role: "button" }, label));
      const toggle = () => { this.expanded.has(lane) ? this.expanded.delete(lane) : this.expanded.add(lane); this.draw(); };
      button.addEventListener("click", toggle);
      button.addEventListener("keydown", event => { if (event.key === "Enter") toggle(); });
    }
  }

  #phases(body, placed, x) {
    if (!placed) return;
    const { phases } = this.doc;
    phases.forEach(([place, phase], index) => {
      const next = phases[index + 1], left = x(this.#at(place)), right = x(next ? this.#at(next[0]) : this.#at(this.count));
      if (right < GUTTER || right - left < .5 || left > x(this.to)) return;
      const bar = body.appendChild(svg("rect", { class: `phase ${phase}`, x: left, y: placed.top + PAD + 2, width: right - left, height: ROW - 6, rx: 2 }));
      bar.append(svg("title", {}, PHASES[phase]));
    });
  }

  #bars(body, by, x, room) {
    const { lane, resource, first, last, state } = this.doc.bars;
    const found = this.finding === null ? null : this.doc.findings[this.finding];
    const wanted = found && found.resources.length && !this.filters.resource ? new Set(found.resources) : null;
    const narrow = new Map(), more = new Map(), labels = [];
    for (let i = 0; i < lane.length; i++) {
      const placed = by.get(lane[i]);
      if (!placed || !this.#shows(resource[i])) continue;
      const a = this.#at(first[i]), b = this.#at(last[i]);
      if (b < this.from || a > this.to) continue;
      const left = Math.max(GUTTER - 4, x(a)), right = Math.max(left + 1, Math.min(GUTTER + room + 12, x(b)));
      const row = placed.rows.get(resource[i]);
      if (row === undefined) {
        const folded = more.get(lane[i]) ?? new Set();
        more.set(lane[i], folded.add(resource[i]));
        continue;
      }
      const hue = this.#hue(resource[i]), dim = (wanted && !wanted.has(resource[i])) || placed.dim;
      const y = placed.top + PAD + row * ROW;
      if (right - left < 3) {
        const key = `${lane[i]}/${row}`, bucket = Math.floor(left / 3);
        const thin = narrow.get(key) ?? narrow.set(key, { hue, dim, y, buckets: new Set() }).get(key);
        thin.buckets.add(bucket);
        continue;
      }
      const bar = svg("rect", { class: `bar ${state[i]}${dim ? " dim" : ""}`, x: left, y, width: right - left, height: ROW - 3, rx: 2, fill: hue, "data-step": Math.min(first[i], this.count - 1) });
      bar.append(svg("title", {}, `${this.doc.lanes[lane[i]].name} ${STATES[state[i]]} ${this.doc.resources[resource[i]]}`));
      body.append(bar);
      const contested = this.doc.twice.filter(([which, from, , lanes]) => which === resource[i] && first[i] < from && from < last[i] && lanes.includes(lane[i]));
      const end = Math.min(right, ...contested.map(each => x(this.#at(each[1]))));
      const label = cutResource(this.doc.resources[resource[i]], end - Math.max(left, GUTTER) - 6);
      if (!label) continue;
      if (this.doc.twice.some(([which, from, to, lanes]) => which === resource[i] && from <= first[i] && first[i] < to && lanes.includes(lane[i]))) continue;
      const kind = state[i] !== "believed" ? " faint" : LIGHT_TEXT.has(hue) ? " light" : "";
      labels.push(svg("text", { class: `onbar${kind}${dim ? " dim" : ""}`, x: Math.max(left, GUTTER) + 4, y: y + 11 }, label));
    }
    for (const { hue, dim, y, buckets } of narrow.values()) {
      body.append(svg("path", { class: `bar${dim ? " dim" : ""}`, d: thin(y, buckets, ROW - 3), fill: hue }));
    }
    for (const [each, folded] of more) {
      const placed = by.get(each);
      body.append(svg("text", { class: "small", x: GUTTER + 4, y: placed.top + PAD + placed.rows.size * ROW + 11 }, `and ${folded.size} more resources here`));
    }
    return labels;
  }

  #nobody(body, placed, x) {
    if (!placed) return;
    const narrow = new Map();
    for (const [resource, first, last] of this.doc.unowned) {
      const row = placed.rows.get(resource), left = x(this.#at(first)), right = x(this.#at(last));
      if (row === undefined || right < GUTTER || left > x(this.to)) continue;
      const y = placed.top + PAD + row * ROW, wide = right - Math.max(left, GUTTER);
      if (right - left < 3) {
        (narrow.get(y) ?? narrow.set(y, new Set()).get(y)).add(Math.floor(left / 3));
        continue;
      }
      const bar = body.appendChild(svg("rect", { class: "unowned", x: left, y, width: Math.max(1, right - left), height: ROW - 4, rx: 2 }));
      bar.append(svg("title", {}, `nobody owns ${this.doc.resources[resource]}`));
      const label = cutResource(this.doc.resources[resource], wide - 6);
      if (label) body.append(svg("text", { class: "small", x: Math.max(left, GUTTER) + 4, y: y + 10.5 }, label));
    }
    for (const [y, buckets] of narrow) body.append(svg("path", { class: "unowned", d: thin(y, buckets, ROW - 4) }));
  }

  #twice(body, by, x) {
    const labels = [];
    for (const [resource, first, last, lanes, early] of this.#shared()) {
      const left = Math.max(GUTTER - 4, x(this.#at(first))), right = Math.max(left + 2, x(this.#at(last)));
      if (!this.#shows(resource) || right < GUTTER || left > x(this.to)) continue;
      const tops = lanes.map(lane => by.get(lane)).filter(each => each?.rows.has(resource)).map(each => each.top + PAD + each.rows.get(resource) * ROW);
      if (tops.length > 1 && !early) body.append(svg("rect", { class: "between", x: left, y: Math.min(...tops), width: right - left, height: Math.max(...tops) - Math.min(...tops) + ROW - 3 }));
      for (const y of tops) {
        body.append(svg("rect", { class: `twice${early ? " early" : ""}`, x: left, y, width: right - left, height: ROW - 3, rx: 2 }));
        const full = early ? "both believe it" : `${this.doc.resources[resource]}: ${lanes.length} owners`, room = right - left - 6;
        const label = full.length * 6.8 <= room ? full : early ? "" : cutResource(this.doc.resources[resource], room, 6.8);
        if (label) labels.push(svg("text", { class: "onbar contested", x: Math.max(left, GUTTER) + 5, y: y + 11.5 }, label));
      }
    }
    body.append(...labels);
  }

  /** What several own: `early` where they only believe so, because no error was found there, or not before the generation that it is about. */
  *#shared() {
    for (const [resource, first, last, lanes] of this.doc.twice) {
      const error = this.doc.findings.find(each => each.severity === "error" && each.resources.includes(resource)
        && (each.places.every(place => place === null) || each.places.some(place => place !== null && place >= first - 1 && place <= last)));
      const begins = error ? this.doc.generations.find(each => each[1] === error.epoch && each[2] === error.generation)?.[0] ?? first : last;
      const split = clamp(begins, first, last);
      if (first < split) yield [resource, first, split, lanes, true];
      if (split < last) yield [resource, split, last, lanes, false];
    }
  }

  #marks(body, by, x, room) {
    const { lane, mark } = this.doc.steps, best = new Map(), width = room / (this.to - this.from);
    const found = this.finding === null ? null : this.doc.findings[this.finding], pinned = new Set(found?.severity === "error" ? found.places : []);
    for (const step of this.#visible()) {
      if (!by.has(lane[step])) continue;
      const key = `${lane[step]}/${Math.floor(x(this.#at(step)) / GLYPH)}`, before = best.get(key);
      const rank = GLYPHS[mark[step]][3] + (pinned.has(step) ? 100 : 0);
      if (before === undefined || rank > before.rank) best.set(key, { step, rank });
    }
    for (const { step } of best.values()) {
      const placed = by.get(lane[step]), at = x(this.#at(step)), y = placed.top + placed.height - MARKS / 2 - 2;
      const [path, , kind] = GLYPHS[mark[step]];
      const group = svg("g", { transform: `translate(${at.toFixed(1)},${y})`, class: placed.dim ? "dim" : "" });
      group.append(svg("path", { class: `mark ${kind}${pinned.has(step) ? " grave" : ""}`, d: path }));
      group.append(svg("rect", { class: "hit", x: -Math.max(7, Math.min(width, 20) / 2), y: -9, width: Math.max(14, Math.min(width, 20)), height: 18, "data-step": step }));
      body.append(group);
    }
  }

  #pins(body, by, x, height) {
    if (this.finding === null) return;
    const stacked = new Map();
    this.doc.findings[this.finding].places.forEach((place, index) => {
      if (place === null) return;
      const at = this.#at(place), placed = by.get(this.doc.steps.lane[place]);
      if (at < this.from || at > this.to || !placed) return;
      const key = `${place}`, above = stacked.get(key) ?? 0;
      stacked.set(key, above + 1);
      const y = placed.top + placed.height - MARKS / 2 - 2 - PIN, left = Math.max(x(at), GUTTER + 9) + above * 18;
      const pin = svg("g", { class: `pin ${this.doc.findings[this.finding].severity}` });
      pin.append(svg("line", { x1: x(at), x2: x(at), y1: HEAD, y2: height }), svg("circle", { cx: left, cy: y, r: 8 }));
      pin.append(svg("text", { x: left, y: y + 4 }, String(index + 1)), svg("circle", { class: "hit", cx: left, cy: y, r: 9, "data-step": place, style: "fill:transparent" }));
      body.append(pin);
    });
  }

  #overview(width) {
    const [least, most] = this.#bounds(), height = 26;
    const x = at => (at - least) / (most - least) * width;
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, preserveAspectRatio: "none" });
    this.doc.generations.forEach(([place], index) => {
      const next = this.doc.generations[index + 1], left = x(this.#at(place)), right = next ? x(this.#at(next[0])) : width;
      if (index % 2 === 0 && right - left > .5) picture.append(svg("rect", { class: "gen", x: left, y: 0, width: Math.max(0, right - left), height }));
    });
    const flags = new Map();
    this.doc.findings.forEach((finding, index) => {
      if (!placesOf(finding).length || finding.severity === "info") return;
      const at = Math.round(x(this.#at(this.telling[index])));
      if (flags.get(at) !== "") flags.set(at, finding.severity === "error" ? "" : " mild");
    });
    for (const [at, mild] of flags) picture.append(svg("line", { class: `flag${mild}`, x1: at, x2: at, y1: 2, y2: height - 2 }));
    picture.append(svg("rect", { class: "window", x: x(this.from), y: 1, width: Math.max(4, x(this.to) - x(this.from)), height: height - 2 }));
    this.map.replaceChildren(picture);
  }

  // The step in words.

  async #panel() {
    const { doc, step } = this;
    if (step === null || !this.count) {
      this.panel.replaceChildren(html("p", { class: "when" }, this.count ? "Choose a step: click a mark, or use the arrow keys." : "There are no events of it to draw."));
      return;
    }
    const [says, sources] = await this.textOf(step);
    if (step !== this.step || doc !== this.doc) return;
    const ts = doc.steps.ts[step], start = doc.steps.ts.find(each => each !== null), generation = doc.generations.findLast(each => each[0] <= step);
    const when = [`step ${step + 1} of ${this.count}`, generation && `generation ${generation[2]}`, ts !== null && `${this.#time(ts, 3)} UTC, ${((ts - start) / 1e6).toFixed(3)} s after the first`];
    const parts = [html("p", { class: "when" }, when.filter(Boolean).join(" · ")), html("h3", {}, says)];
    for (const [place, text] of sources) {
      const figure = html("figure");
      figure.append(html("figcaption", {}, place));
      if (text) figure.append(html("pre", {}, text));
      parts.push(figure);
    }
    parts.push(html("p", { class: "when" }, "after it"), this.#state(step));
    this.panel.replaceChildren(...parts);
  }

  #owned(step, which) {
    const { lane, resource, first, last } = this.doc.bars;
    return resource.filter((_, i) => lane[i] === which && first[i] <= step && step < last[i]);
  }

  #state(step) {
    const { doc } = this, { lane, resource, first, last, state } = doc.bars, held = new Map();
    for (let i = 0; i < lane.length; i++) {
      if (first[i] <= step && step < last[i]) (held.get(lane[i]) ?? held.set(lane[i], []).get(lane[i])).push([resource[i], state[i]]);
    }
    const shared = [...this.#shared()].filter(([, a, b]) => a <= step && step < b), twice = new Map(shared.map(each => [each[0], each[4]]));
    for (const [what, , , lanes] of shared) {
      for (const each of lanes) {
        const mine = held.get(each) ?? held.set(each, []).get(each);
        if (!mine.some(([own]) => own === what)) mine.push([what, "given"]);
      }
    }
    const list = html("dl", { class: "tl-state" });
    const row = (name, chips) => {
      const cell = html("dd");
      cell.append(...(chips.length ? chips.slice(0, 60) : [document.createTextNode("nothing")]), ...(chips.length > 60 ? [document.createTextNode(`and ${chips.length - 60} more`)] : []));
      list.append(html("dt", {}, name), cell);
    };
    const chip = (each, kind) => {
      const hue = this.#hue(each), light = LIGHT_TEXT.has(hue) ? " light" : "";
      return html("span", { class: `tl-chip ${kind}${light}${twice.has(each) && kind !== "stale" ? " alarm" : ""}`, style: `background:${hue}` },
        doc.resources[each] + (twice.has(each) && kind !== "stale" ? (twice.get(each) ? " (others believe so too)" : " (several owners)") : kind === "stale" ? " (fenced)" : ""));
    };
    doc.lanes.forEach((each, index) => {
      const mine = held.get(index);
      if (mine || doc.lanes.length <= FEW_LANES) row(each.name, (mine ?? []).sort((a, b) => a[0] - b[0]).map(([what, kind]) => chip(what, kind)));
    });
    const alone = (doc.unowned ?? []).filter(([, a, b]) => a <= step && step < b).map(each => each[0]);
    if (alone.length) row("nobody", alone.map(each => html("span", { class: "tl-chip", style: "background:none;color:inherit;border-style:dashed;border-color:currentColor" }, doc.resources[each])));
    return list;
  }

  #time(ts, digits) { return new Date(Math.floor(ts / 1000)).toISOString().slice(11, digits ? 23 : 19); }

  // Controls.

  #toolbar() {
    const bar = html("div", { class: "tl-tools", role: "toolbar", "aria-label": "Timeline" });
    const part = (...inside) => { const made = bar.appendChild(html("div")); made.append(...inside); return made; };
    const button = (label, title, act, kind) => {
      const made = html("button", { type: "button", title, class: kind }, label);
      made.addEventListener("click", act);
      return made;
    };
    this.jump = button("First violation", "f", () => this.first(), "first");
    this.back = button("‹ Previous", "p", () => this.next(-1));
    this.forth = button("Next ›", "n", () => this.next());
    this.counted = html("span", { class: "tl-count" });
    part(this.jump, this.back, this.forth, this.counted);
    part(button("←", "one step back (←)", () => this.select((this.step ?? 1) - 1)), button("→", "one step on (→)", () => this.select((this.step ?? -1) + 1)),
      button("−", "wider view (-)", () => this.zoom(1.6)), button("+", "closer view (+)", () => this.zoom(.625)), button("All", "everything (0)", () => this.fit()));
    this.toggle = button("Clock", "by wall clock instead of steps (c)", () => this.setClock(!this.clock));
    this.toggle.setAttribute("aria-pressed", "false");
    part(this.toggle);
    const filter = key => {
      const list = html("datalist", { id: `tl-${key}s-${Timeline.made}` });
      const input = html("input", { type: "search", placeholder: `${key} …`, "aria-label": `show only this ${key}`, list: list.id });
      input.addEventListener("input", () => { this.filters[key] = input.value.trim().toLowerCase(); this.draw(); });
      this[key] = { input, list };
      return [input, list];
    };
    Timeline.made++;
    part(...filter("member"), ...filter("resource"));
    this.rule = html("select", { "aria-label": "show only findings of this rule" });
    this.rule.addEventListener("change", () => { this.filters.rule = this.rule.value; const chosen = this.chosen(); if (chosen.length) this.goTo(chosen[0]); });
    part(this.rule);
    this.dropped = html("span", { class: "tl-count" });
    part(this.dropped);
    return bar;
  }

  #lists() {
    const names = { member: this.doc.lanes.map(each => each.name), resource: this.doc.resources };
    for (const [key, values] of Object.entries(names)) this[key].list.replaceChildren(...values.slice(0, 500).map(value => html("option", { value })));
  }

  #legend() {
    const made = html("details", { class: "tl-legend", open: window.innerWidth > 1000 ? "" : undefined });
    made.append(html("summary", {}, "How to read this"));
    const list = made.appendChild(html("ul"));
    const entry = (draw, says, wide = 34) => {
      const item = list.appendChild(html("li")), picture = item.appendChild(svg("svg", { width: wide, height: 18, viewBox: `0 0 ${wide} 18`, "aria-hidden": "true" }));
      draw(picture);
      item.append(html("span", {}, says));
    };
    const box = (kind, fill) => picture => picture.append(svg("rect", { class: kind, x: 1, y: 3, width: 32, height: 12, rx: 2, fill }));
    entry(box("bar believed", HUES[0]), "a member believes that it owns a resource (its own log)");
    entry(box("bar given", HUES[0]), "a member was given it (the coordinator's word; its own log was not captured)");
    entry(box("bar stale", HUES[0]), "it still believes so, but the group went on without it: fenced, and legal");
    entry(picture => { picture.append(this.#patterns(), svg("rect", { class: "twice", x: 1, y: 3, width: 32, height: 12, rx: 2 })); }, "several members own it at once, against a promise");
    entry(picture => { picture.append(this.#patterns(), svg("rect", { class: "twice early", x: 1, y: 3, width: 32, height: 12, rx: 2 })); }, "several believe so: legal by itself, while claims are contested");
    entry(box("unowned", "none"), "nobody owns it");
    entry(picture => { picture.append(svg("circle", { cx: 17, cy: 9, r: 8, fill: "#d55e00" }), svg("text", { x: 17, y: 13, "text-anchor": "middle", style: "fill:#fff;font-weight:700;font-size:11px" }, "1")); }, "what the finding rests on, by number");
    for (const phase of ["preparing", "completing", "stable"]) entry(picture => { picture.append(this.#patterns(), svg("rect", { class: `phase ${phase}`, x: 1, y: 4, width: 32, height: 10, rx: 2 })); }, `the group is in ${PHASES[phase]}`);
    for (const [, [path, says, kind]] of Object.entries(GLYPHS)) {
      entry(picture => { const group = picture.appendChild(svg("g", { transform: "translate(17,9)" })); group.append(svg("path", { class: `mark ${kind}`, d: path })); }, says);
    }
    const keys = made.appendChild(html("p"));
    for (const [key, says] of [["f", "first violation"], ["n", "next finding"], ["p", "previous"], ["← →", "step"], ["+ −", "zoom"], ["0", "everything"], ["c", "clock or steps"], ["Esc", "let go"]]) {
      keys.append(html("kbd", {}, key), document.createTextNode(` ${says}   `));
    }
    made.append(html("p", { class: "when" }, "From left to right is logical time: first what the protocol forces (generations, requests before their answers), and only where it forces nothing the clocks of the hosts. An epoch is the time of one coordinator: failover, or loading the group again, begins the next."));
    return made;
  }

  #listen() {
    this.lanes.addEventListener("click", event => {
      const step = event.target.dataset?.step;
      if (step !== undefined && !this.dragged) this.select(Number(step));
    });
    this.lanes.addEventListener("mousemove", event => this.#hover(event));
    this.lanes.addEventListener("mouseleave", () => { this.tip.hidden = true; });
    this.lanes.addEventListener("scroll", () => this.draw());
    this.lanes.addEventListener("wheel", event => {
      const across = event.shiftKey ? event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.zoom(event.deltaY > 0 ? 1.15 : .87, this.#under(event)); }
      else if (across && Math.abs(across) >= Math.abs(event.shiftKey ? 0 : event.deltaY)) { event.preventDefault(); this.#pan(across); }
    }, { passive: false });
    this.#drag(this.lanes, (dx) => this.#pan(-dx));
    this.#drag(this.map, (dx, event) => this.#center(event), true);
    document.addEventListener("keydown", event => this.#key(event));
    new ResizeObserver(() => this.draw()).observe(this.lanes);
    window.addEventListener("beforeprint", () => this.drawNow());
  }

  #key(event) {
    if (event.key === "Escape" && event.target.closest("input")) event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, [contenteditable]") || !this.doc) return;
    const acts = {
      ArrowRight: () => this.select((this.step ?? -1) + 1), ArrowLeft: () => this.select((this.step ?? 1) - 1),
      Home: () => this.select(0), End: () => this.select(this.count - 1),
      f: () => this.first(), n: () => this.next(), p: () => this.next(-1), "+": () => this.zoom(.625), "=": () => this.zoom(.625), "-": () => this.zoom(1.6),
      0: () => this.fit(), c: () => { if (!this.toggle.disabled) this.setClock(!this.clock); },
      Escape: () => { this.finding = null; this.step = null; this.#panel(); this.draw(); },
    };
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  }

  #drag(target, move, atOnce = false) {
    let last = null, begun = 0;
    target.addEventListener("pointerdown", event => {
      if (event.button) return;
      last = begun = event.clientX;
      this.dragged = false;
      if (atOnce) move(0, event);
    });
    window.addEventListener("pointermove", event => {
      if (last === null || (!this.dragged && Math.abs(event.clientX - begun) < 4)) return;
      this.dragged = true;
      move(event.clientX - last, event);
      last = event.clientX;
    });
    window.addEventListener("pointerup", () => { last = null; });
  }

  #pan(pixels) {
    const by = pixels / Math.max(1, this.lanes.clientWidth - GUTTER) * (this.to - this.from);
    this.#view(this.from + by, this.to + by);
    this.draw();
  }

  #center(event) {
    const box = this.map.getBoundingClientRect(), [least, most] = this.#bounds(), width = this.to - this.from;
    const at = least + (event.clientX - box.left) / box.width * (most - least);
    this.#view(at - width / 2, at + width / 2);
    this.draw();
  }

  #under(event) {
    const box = this.lanes.getBoundingClientRect();
    return this.from + (event.clientX - box.left - GUTTER) / (box.width - GUTTER - 8) * (this.to - this.from);
  }

  async #hover(event) {
    const step = event.target.dataset?.step;
    if (step === undefined || !event.target.classList.contains("hit")) { this.tip.hidden = true; return; }
    const box = this.root.getBoundingClientRect(), left = event.clientX - box.left, top = event.clientY - box.top;
    const at = Number(step), [says, sources] = await this.textOf(at), lane = this.doc.steps.lane[at];
    const lines = [`${at + 1}. ${says}`];
    if (sources.length) lines.push(sources[0].map(each => each.slice(0, 160)).join("  "));
    if (lane >= 0) lines.push(`after it ${this.doc.lanes[lane].name} owns ${cut(this.#owned(at, lane).map(each => this.doc.resources[each]).join(", ") || "nothing", 160, 1)}`);
    this.tip.replaceChildren(...lines.map(each => html("p", {}, each)));
    this.tip.style.left = `${Math.min(left + 14, box.width - 300)}px`;
    this.tip.style.top = `${top + 16}px`;
    this.tip.hidden = false;
  }
}
Timeline.made = 0;
