"use strict";
// The page asks the model for everything that it shows. Whatever comes from there is put into the page as text, never as markup.

const $ = (id) => document.getElementById(id);

function el(tag, props, ...children) {
  const element = document.createElement(tag);
  const { data, ...rest } = props || {};
  Object.assign(element, rest);
  Object.assign(element.dataset, data || {});
  element.append(...children.filter(Boolean));
  return element;
}

const timeline = new Timeline($("timeline"));
$("timeline").querySelector(".tl-legend").open = false;
let state = null;
let asking = false;

async function ask(path, body) {
  if (asking) return false;
  asking = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(path, options || {});
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error);
    complain("");
    render(told);
    return true;
  } catch (error) {
    complain(error instanceof TypeError ? "The simulator does not answer: is kipcheck simulate still running?" : error.message);
    return false;
  } finally {
    asking = false;
    document.body.removeAttribute("aria-busy");
  }
}

const say = (...lines) => ask("do", { lines });
const go = (step) => ask("go", { step });

function complain(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

// What is shown.

function render(told) {
  const before = state;
  const focused = document.activeElement && document.activeElement.dataset.key;
  const open = new Set([...document.querySelectorAll("details[data-key][open]")].map((each) => each.dataset.key));
  state = told;
  renderSteps();
  renderMembers(before);
  renderActs();
  renderTopics();
  renderAdd();
  renderPromises(before);
  renderScript();
  renderTimeline();
  for (const each of document.querySelectorAll("details[data-key]")) each.open = each.open || open.has(each.dataset.key);
  const again = focused && document.querySelector(`[data-key="${CSS.escape(focused)}"]`);
  if (again) again.focus({ preventScroll: true });
}

function renderSteps() {
  const done = state.steps.length;
  $("rewind").disabled = $("undo").disabled = !done;
  $("ahead").textContent = state.ahead.length ? state.ahead[0] : "";
  $("redo").hidden = $("end").hidden = !state.ahead.length;
  $("next").disabled = !state.next.length;
  const facts = [
    ["group", state.group.state],
    ["generation", String(state.group.generation)],
    ["protocol", state.group.protocol || "none yet"],
    ...(state.group.epoch ? [["failovers", String(state.group.epoch)]] : []),
    ["time", state.now],
  ];
  $("group").replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", { textContent: name }), el("dd", { textContent: value }))));
}

function act(button, className) {
  return el("button", {
    type: "button",
    className: className || "",
    textContent: button.label || button.words,
    title: button.label ? button.words : "",
    data: { key: `act ${button.line}`, line: button.line },
  });
}

const USUAL = new Set(["start", "close", "crash", "pause", "resume", "commit"]);

function renderMembers(before) {
  const had = new Map((before ? before.members : []).map((member) => [member.name, member]));
  const owners = new Map();
  for (const member of state.members) for (const resource of member.owned) if (!member.fenced.includes(resource)) owners.set(resource, (owners.get(resource) || 0) + 1);
  const cards = state.members.map((member) => card(member, had.get(member.name), owners));
  const free = resources().filter((resource) => !owners.has(resource));
  if (free.length && state.members.length) {
    const chips = free.map((resource) => chip(resource, ""));
    cards.push(el("article", { className: "member nobody" }, el("h3", { textContent: "Nobody" }), el("p", { className: "state", textContent: "owns these now" }), el("div", { className: "owned" }, ...chips)));
  }
  if (!cards.length) cards.push(el("p", { className: "quiet", textContent: "Nobody is here yet. Choose a story above, or name a topic and add members to consume it." }));
  $("members").replaceChildren(...cards);
}

function resources() {
  if (!state.connect) return state.topics.flatMap((topic) => numbered(topic.partitions, (n) => `${topic.name}-${n}`));
  return state.topics.flatMap((topic) => [`connector:${topic.name}`, ...numbered(topic.partitions, (n) => `task:${topic.name}-${n}`)]);
}

const numbered = (count, name) => Array.from({ length: count }, (_, n) => name(n));

/** A resource, in the colour that it has in the timeline. */
function chip(resource, classes) {
  const place = state.timeline ? state.timeline.resources.indexOf(resource) : -1;
  const made = el("span", { className: `resource ${classes}`, textContent: resource });
  if (place >= 0) made.style.setProperty("--hue", HUES[place % HUES.length]);
  if (LIGHT_TEXT.has(HUES[place % HUES.length])) made.classList.add("light");
  return made;
}

function card(member, had, owners) {
  const away = member.mode === "absent";
  const amiss = member.mode === "paused" || member.mode === "stalled" || /held up|Exception/.test(member.state);
  const earlier = new Set(had ? had.owned : member.owned);
  const chips = member.owned.map((resource) => {
    const fenced = member.fenced.includes(resource);
    return chip(resource, `${earlier.has(resource) ? "" : "new"} ${fenced ? "fenced" : owners.get(resource) > 1 ? "twice" : ""}`);
  });
  const changed = had && (had.state !== member.state || had.owned.join() !== member.owned.join());
  const usual = member.buttons.filter((button) => USUAL.has(button.line.split(" ")[0]));
  const rare = member.buttons.filter((button) => !USUAL.has(button.line.split(" ")[0]));
  return el(
    "article",
    { className: `member ${away ? "absent" : ""} ${changed ? "changed" : ""}`, data: { member: member.name } },
    el(
      "div",
      { className: "head" },
      el("h3", { textContent: member.name }),
      member.instance && el("span", { className: "badge", textContent: `static ${member.instance}` }),
      member.leads && el("span", { className: "badge leads", textContent: "leader" }),
      member.member && el("span", { className: "id", textContent: member.member }),
    ),
    el("p", { className: `state ${away ? "away" : amiss ? "amiss" : ""}`, textContent: member.state }),
    el("div", { className: "owned" }, ...(chips.length ? chips : [el("span", { className: "quiet", textContent: away ? "" : "owns nothing" })])),
    el("div", { className: "buttons" }, ...usual.map((button) => act(button))),
    el(
      "details",
      { data: { key: `more ${member.name}` } },
      el("summary", { textContent: "more" }),
      el("div", { className: "buttons" }, ...rare.map((button) => act(button))),
      member.subscribes && subscription(member),
      el("p", { className: "config", textContent: member.config.join(" · ") }),
    ),
  );
}

function subscription(member) {
  const input = el("input", { value: (member.subscribed || []).join(","), ariaLabel: `topics of ${member.name}`, data: { key: `topics ${member.name}` } });
  const form = el("form", { autocomplete: "off" }, input, el("button", { textContent: "Subscribe" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(`subscribe ${member.name} ${listed(input.value) || "-"}`);
  });
  return form;
}

const listed = (text) => text.split(/[\s,]+/).filter(Boolean).join(",");

function renderActs() {
  const list = state.next.map((each) => el("li", {}, act(each)));
  $("acts").replaceChildren(...(list.length ? list : [el("li", { className: "quiet", textContent: "Nothing: the group rests." })]));
  $("unrest").textContent = state.unrest.length ? `Not at rest: ${state.unrest.join("; ")}.` : "";
  const said = state.said.length ? state.said : ["Nothing that an observer sees."];
  $("said").replaceChildren(...said.map((sentence) => el("li", { textContent: sentence })));
  $("said").scrollTop = $("said").scrollHeight;
}

function renderTopics() {
  $("topics-title").textContent = state.connect ? "Connectors and their tasks" : "Topics and their partitions";
  $("sizes").replaceChildren(
    ...state.topics.map((topic) =>
      el(
        "li",
        {},
        el("span", { textContent: `${topic.name}: ${topic.partitions}` }),
        el("button", { type: "button", textContent: "+1", title: `${topic.name} gets one more`, data: { key: `grow ${topic.name}`, line: `resize ${topic.name} ${topic.partitions + 1}` } }),
        el("button", { type: "button", textContent: "Delete", title: `${topic.name} goes`, data: { key: `drop ${topic.name}`, line: `resize ${topic.name} 0` } }),
      ),
    ),
  );
}

function renderAdd() {
  const form = $("add");
  if (state.members.length) form.elements.kind.value = state.connect ? "worker" : "consumer";
  $("kind").disabled = state.members.length > 0;
  showKind();
}

function showKind() {
  const workers = $("add").elements.kind.value === "worker";
  $("add").classList.toggle("workers", workers);
  const names = new Set(state.members.map((member) => member.name));
  const letter = workers ? "w" : $("instance").value ? "s" : "c";
  if (!$("name").value || /^[csw]\d+$/.test($("name").value)) {
    let number = 1;
    while (names.has(letter + number)) number += 1;
    $("name").value = letter + number;
  }
}

function renderPromises(before) {
  const count = (status) => state.promises.filter((promise) => promise.status === status).length;
  const broken = count("broken");
  $("tally").textContent = `${broken ? `${broken} broken, ` : ""}${count("held")} held so far`;
  $("mutation").value = state.mutation ? state.mutation.name : "";
  $("mutant").hidden = !state.mutation;
  if (state.mutation) {
    const { what, breaks, history } = state.mutation;
    $("mutant-what").textContent = `${what} ${breaks.length ? `Breaks ${breaks.join(", ")}.` : "No observer can tell."}${history ? ` ${history}.` : ""}`;
    $("find").hidden = !breaks.length;
  }
  const was = new Map((before ? before.promises : []).map((promise) => [promise.id, promise.status]));
  const shown = (among) => state.promises.filter(among).map((each) => promise(each, was.get(each.id)));
  const sections = broken ? [el("h3", { textContent: "Broken" }), ...shown((each) => each.status === "broken")] : [];
  for (const kip of new Set(state.promises.map((each) => each.kip))) {
    const these = shown((each) => each.kip === kip && (each.status === "held" || each.status === "noted"));
    if (these.length) sections.push(el("h3", { textContent: kip }), ...these);
  }
  const open = shown((each) => each.status === "open");
  if (open.length) sections.push(el("details", { className: "rest", data: { key: "did not apply" } }, el("summary", { textContent: `${open.length} did not apply yet` }), ...open));
  $("promises").replaceChildren(...sections);
}

const OFTEN = { open: () => "not yet", held: (p) => `held ${p.checked}×`, noted: (p) => `note: ${p.findings.length}`, broken: () => "broken" };

function promise(told, was) {
  const findings = told.findings.flatMap((finding) => [
    el("p", { textContent: finding.message }),
    finding.relaxed && el("p", { className: "quiet", textContent: finding.relaxed }),
    el("ol", { className: "argument" }, ...finding.argument.map((step, at) => argument(finding, step, at))),
  ]);
  const shown = el(
    "details",
    { className: `promise ${told.status}`, open: told.status === "broken" && was !== "broken", data: { key: `promise ${told.id}` } },
    el("summary", { data: { key: `summary ${told.id}` } }, el("span", { className: "rule", textContent: told.id }), el("span", { className: "often", textContent: OFTEN[told.status](told) })),
    el("p", { textContent: told.promise }),
    ...findings,
    told.why && !told.findings.length && el("p", { className: "quiet", textContent: told.why }),
  );
  if (told.findings.length) shown.querySelector("summary").addEventListener("click", () => timeline.goTo(told.findings[0].number));
  return shown;
}

function argument(finding, step, at) {
  if (step.place === null) return el("li", { textContent: step.says });
  const button = el("button", { type: "button", textContent: step.says, title: "Show this step in the timeline", data: { key: `argument ${finding.fingerprint} ${at}` } });
  button.addEventListener("click", () => {
    timeline.goTo(finding.number);
    timeline.select(step.place);
    $("timeline").scrollIntoView({ block: "nearest" });
  });
  return el("li", {}, button);
}

function renderScript() {
  $("validate").textContent = state.validate;
  $("events").textContent = String(state.events);
  const done = state.steps.map((step, at) => [step.line, at + 1, step.happened ? "" : "left-out"]);
  const coming = state.ahead.map((line, at) => [line, state.steps.length + at + 1, "coming"]);
  $("script").replaceChildren(
    ...[...done, ...coming].map(([line, step, className]) => {
      const button = el("button", { type: "button", className, textContent: line, title: "Go to the moment after this step", data: { key: `script ${step}` } });
      button.addEventListener("click", () => go(step));
      return el("li", {}, button);
    }),
  );
}

const AT_ONCE = 60;

function renderTimeline() {
  const drawn = state.timeline;
  $("timeline").hidden = !drawn;
  if (!drawn) return;
  const last = drawn.steps.lane.length - 1;
  timeline.show(drawn, { step: last });
  if (last > AT_ONCE) timeline.zoom(AT_ONCE / last, last);
}

// What is done.

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-line]");
  if (button && !button.disabled) say(button.dataset.line);
});
$("rewind").addEventListener("click", () => go(0));
$("undo").addEventListener("click", () => go(state.steps.length - 1));
$("redo").addEventListener("click", () => go(state.steps.length + 1));
$("end").addEventListener("click", () => go(state.steps.length + state.ahead.length));
$("next").addEventListener("click", () => say(state.next[0].line));
$("due").addEventListener("click", () => say("due"));
$("settle").addEventListener("click", () => say("settle"));

function submitted(id, then) {
  $(id).addEventListener("submit", (event) => {
    event.preventDefault();
    then();
  });
}

const milliseconds = (id) => Math.round(Number($(id).value) * 1000);

submitted("wait", () => say(`wait ${milliseconds("seconds")}`));
submitted("resize", () => say(`resize ${$("topic").value} ${$("partitions").value}`));
submitted("add", async () => {
  const workers = $("add").elements.kind.value === "worker";
  const topics = listed($("topics").value) || state.topics.map((topic) => topic.name).join(",");
  const options = workers
    ? [`protocol=${$("protocol").value}`, `delay=${milliseconds("delay")}`]
    : [`topics=${topics}`, `assignors=${$("assignors").value}`, ...($("instance").value ? [`instance=${$("instance").value}`] : [])];
  const times = ["session", "rebalance", "heartbeat"].map((id) => `${id}=${milliseconds(id)}`);
  if (await say(["add", $("name").value, workers ? "worker" : "consumer", ...options, ...times].join(" "))) $("instance").value = "";
  showKind();
});
submitted("begin", async () => {
  const [kind, name] = $("beginning").value.split(":");
  if (await ask("begin", { [kind]: name })) $("what").textContent = $("beginning").selectedOptions[0].dataset.what || "";
});
$("add").addEventListener("change", showKind);
$("mutation").addEventListener("change", () => ask("mutate", { mutation: $("mutation").value }));
$("find").addEventListener("click", async () => {
  $("what").textContent = "Searching for the shortest run …";
  const found = await ask("begin", { counterexample: state.mutation.name });
  $("what").textContent = found ? "The group has formed, and the shortest run that breaks the promise lies ahead: play it step by step, or to its end." : "";
  if (found) $("beginning").value = "";
});
$("load").addEventListener("change", async () => {
  const [file] = $("load").files;
  if (file && (await ask("begin", { script: await file.text() }))) {
    $("what").textContent = file.name;
    $("beginning").value = "";
  }
  $("load").value = "";
});

const KEYS = { o: "next", d: "due", s: "settle", u: "undo", r: "redo" };
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest && event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  $(KEYS[event.key]).click();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) ask("state");
});
ask("state").then(() => document.documentElement.setAttribute("data-ready", ""));
