"use strict";
// The page of `kipcheck show`: which group, which finding, and links that name them.

async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), each => each.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Page {
  constructor(groups) {
    this.groups = groups;
    this.docs = new Map();
    this.texts = new Map();
    this.now = null;
    this.timeline = new Timeline(document.getElementById("timeline"), {
      onStep: () => this.named(),
      onFinding: index => this.explain(index),
      onPast: by => this.past(by),
    });
    this.select = document.getElementById("group");
    this.select?.addEventListener("change", () => this.open(Number(this.select.value), { first: true }));
    window.addEventListener("hashchange", () => this.follow());
    document.getElementById("explained").addEventListener("click", event => {
      if (window.getSelection().toString()) return;
      event.target.closest("figure")?.classList.toggle("open");
      const item = event.target.closest("ol.argument > li");
      if (!item) return;
      const places = this.doc.findings[this.timeline.finding].places, place = places[[...item.parentElement.children].indexOf(item)];
      if (place !== null && place !== undefined) this.timeline.select(place);
    });
  }

  get doc() { return this.docs.get(this.now); }

  /** Show a group: at a finding, at a step, at its `first` finding or at its `last` one. */
  async open(index, { finding = null, step = null, first = false, last = false } = {}) {
    const group = this.groups[index];
    if (!this.docs.has(index)) this.docs.set(index, await unpacked(group.id));
    this.now = index;
    if (this.select) this.select.value = String(index);
    document.getElementById("verdict").textContent = group.verdict;
    document.getElementById("verdict").className = `verdict ${group.verdict}`;
    document.getElementById("name").textContent = group.name;
    for (const about of document.querySelectorAll(".about")) about.classList.toggle("chosen", about.dataset.group === String(index));
    if (finding === null) this.explain(null);
    this.timeline.show(this.doc, { finding, step, textOf: at => this.text(index, at), before: this.beside(index, -1) !== null, after: this.beside(index, 1) !== null });
    if (first) this.timeline.first();
    if (last) this.timeline.last();
  }

  /** The next group in one direction that has findings. */
  beside(index, by) {
    for (let at = index + by; at >= 0 && at < this.groups.length; at += by) if (this.groups[at].anchors.length) return at;
    return null;
  }

  past(by) {
    const at = this.beside(this.now, by);
    if (at !== null) this.open(at, { first: by > 0, last: by < 0 });
  }

  /** The words of a step: a part of them is unpacked when the first one of it is wanted. */
  async text(index, step) {
    const { id, each } = this.groups[index], part = Math.floor(step / each), key = `${id}-${part}`;
    if (!this.texts.has(key)) {
      if (this.texts.size > 40) this.texts.delete(this.texts.keys().next().value);
      this.texts.set(key, unpacked(key));
    }
    return (await this.texts.get(key))[step % each];
  }

  explain(index) {
    const finding = index === null ? null : this.doc.findings[index];
    document.getElementById("headline").textContent = finding?.message ?? "";
    document.getElementById("headline").className = finding?.severity ?? "";
    for (const card of document.querySelectorAll("#explained > article")) card.classList.toggle("chosen", card.id === finding?.anchor);
  }

  /** The address names what is chosen: a finding, a step, or a step of a finding. */
  named() {
    const { finding, step } = this.timeline;
    const parts = [finding !== null && this.doc.findings[finding].anchor, step !== null && `step-${this.doc.steps.id[step]}`];
    history.replaceState(null, "", `#${parts.filter(Boolean).join("/")}`);
  }

  /** What the address names; else the first finding. */
  async follow() {
    const hash = decodeURIComponent(location.hash.slice(1)), [anchor, id] = hash.startsWith("step-") ? ["", hash.slice(5)] : hash.split("/step-");
    const strange = document.getElementById("strange");
    strange.hidden = true;
    for (let index = 0; index < this.groups.length; index++) {
      const finding = anchor ? this.groups[index].anchors.indexOf(anchor) : -1;
      if (anchor && finding < 0) continue;
      if (!this.docs.has(index)) this.docs.set(index, await unpacked(this.groups[index].id));
      const step = id ? this.docs.get(index).steps.id.indexOf(id) : -1;
      if (finding < 0 && step < 0) continue;
      await this.open(index, finding >= 0 ? { finding } : {});
      if (step >= 0 && finding < 0) this.timeline.zoom(Math.min(1, 60 / this.timeline.count), step);
      if (step >= 0) this.timeline.select(step);
      return;
    }
    await this.open(0, { first: true });
    strange.hidden = !hash;
    strange.textContent = `This page has nothing that is called ${hash.slice(0, 80)}: it may be of another trace.`;
  }
}

const page = new Page(JSON.parse(document.getElementById("groups").textContent));
page.follow().then(() => document.documentElement.setAttribute("data-ready", ""));
