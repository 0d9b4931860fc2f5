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
      onStep: step => this.named(`step-${this.doc.steps.id[step]}`),
      onFinding: index => { this.named(this.doc.findings[index].anchor); this.explain(index); },
    });
    this.select = document.getElementById("group");
    this.select?.addEventListener("change", () => this.open(Number(this.select.value), { finding: 0 }));
    window.addEventListener("hashchange", () => this.follow());
    document.getElementById("explained").addEventListener("click", event => {
      const item = event.target.closest("ol.argument > li");
      if (!item || window.getSelection().toString()) return;
      const places = this.doc.findings[this.timeline.finding].places, place = places[[...item.parentElement.children].indexOf(item)];
      if (place !== null && place !== undefined) this.timeline.select(place);
    });
  }

  get doc() { return this.docs.get(this.now); }

  async open(index, { finding = null, step = null } = {}) {
    const group = this.groups[index];
    if (!this.docs.has(index)) this.docs.set(index, await unpacked(group.id));
    this.now = index;
    if (this.select) this.select.value = String(index);
    const doc = this.doc, found = finding !== null && finding < doc.findings.length ? finding : null;
    document.getElementById("verdict").textContent = group.verdict;
    document.getElementById("verdict").className = `verdict ${group.verdict}`;
    document.getElementById("name").textContent = group.name;
    if (found === null) this.explain(null);
    this.timeline.show(doc, { finding: found, step, textOf: at => this.text(index, at) });
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

  named(hash) { history.replaceState(null, "", `#${hash}`); }

  /** What the address names: a finding by its fingerprint, or a step; else the first error. */
  async follow() {
    const hash = decodeURIComponent(location.hash.slice(1));
    for (let index = 0; index < this.groups.length; index++) {
      const finding = this.groups[index].anchors.indexOf(hash);
      if (finding >= 0) return this.open(index, { finding });
    }
    if (hash.startsWith("step-")) {
      for (let index = 0; index < this.groups.length; index++) {
        if (!this.docs.has(index)) this.docs.set(index, await unpacked(this.groups[index].id));
        const step = this.docs.get(index).steps.id.indexOf(hash.slice(5));
        if (step >= 0) {
          await this.open(index, {});
          this.timeline.zoom(Math.min(1, 60 / this.timeline.count), step);
          return this.timeline.select(step);
        }
      }
    }
    await this.open(0, {});
    return this.timeline.first();
  }
}

const page = new Page(JSON.parse(document.getElementById("groups").textContent));
page.follow().then(() => document.documentElement.setAttribute("data-ready", ""));
