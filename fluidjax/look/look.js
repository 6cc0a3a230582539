(() => {
"use strict";
const MOST = 100; // buttons that a list in the panel shows
const make = (tag, text, cls) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
};

function enhance(root) {
  const held = root.querySelector("script.fj-data");
  const body = root.querySelector(".fj-body");
  const list = root.querySelector(".fj-list");
  if (!held || !list) return;
  const data = JSON.parse(held.textContent);
  root.classList.add("live");
  body.classList.add("two");

  // -- the tools: search, folds, and the panel of details
  const bar = make("div", undefined, "fj-bar");
  bar.setAttribute("role", "search");
  const box = make("input");
  box.type = "search";
  box.placeholder = "search ops: name, type, line, role";
  box.setAttribute("aria-label", "search ops");
  const said = make("span", "", "fj-said");
  said.setAttribute("role", "status");
  const unfold = make("button", "unfold all"), folded = make("button", "fold all");
  for (const b of [unfold, folded]) b.type = "button";
  bar.append(box, said, unfold, folded);
  body.before(bar);
  const panel = make("div", undefined, "fj-panel");
  panel.tabIndex = 0;
  panel.setAttribute("role", "region");
  panel.setAttribute("aria-label", "details");
  body.append(panel);

  const rows = [...list.querySelectorAll("ol[data-b]>li")];
  const outer = list.querySelectorAll("details:not(.long)");
  const blockOf = (e) => { const own = e.closest("[data-b]"); return own ? +own.dataset.b : 0; };
  const numberOf = (row) => +row.dataset.n;

  // -- who writes and reads what; made when first asked for
  let index = null;
  const uses = () => {
    if (index) return index;
    index = new Map();
    const all = [...list.querySelectorAll("a")].map((a) => [a, blockOf(a)]);
    const key = (b, name) => b + " " + name;
    for (const [a, b] of all)
      if (a.classList.contains("d")) index.set(key(b, a.textContent), {at: b, name: a.textContent, decl: a, writers: [], readers: [], all: []});
    for (const [a, b] of all) {
      const name = a.textContent;
      let at = b;
      for (let left = data.parents.length; left > 0 && at >= 0 && !index.has(key(at, name)); left--) at = data.parents[at];
      let found = index.get(key(at, name));
      if (!found) index.set(key(b, name), found = {at: b, name, decl: null, writers: [], readers: [], all: []});
      a.of = found;
      found.all.push(a);
      const row = a.closest("li[data-n]");
      if (!row || a.closest("li") !== row) continue;
      const to = a.closest(".o") ? found.writers : found.readers;
      if (to[to.length - 1] !== row) to.push(row);
    }
    return index;
  };
  const before = (a, b) => blockOf(a) - blockOf(b) || numberOf(a) - numberOf(b);

  const kindOf = (row) => row.querySelector(":scope>.op").textContent;
  const lineOf = (row) => {
    if (row.dataset.l === undefined) return "";
    const [file, line] = row.dataset.l.split(":");
    return data.files[file] + (line ? ":" + line : "");
  };
  const title = (row) => {
    const b = blockOf(row);
    return (b ? "block " + b + " " : "") + "op " + numberOf(row) + " " + kindOf(row);
  };
  const declared = (use) => {
    if (!use.decl) return null;
    const type = use.decl.nextElementSibling;
    const own = use.decl.closest("li.v");
    const flags = own ? own.textContent.split(": ").slice(1).join(": ") : type ? type.textContent : "";
    return (own ? own.firstChild.textContent.trim() + " " : "") + flags;
  };

  // -- the panel
  let pinned = null, shown = null;
  let marked = [];
  const mark = (elements) => {
    for (const e of marked) e.classList.remove("use");
    marked = elements;
    for (const e of marked) e.classList.add("use");
  };
  const goTo = (row) => {
    const b = make("button", title(row));
    b.type = "button";
    b.go = row;
    return b;
  };
  const buttons = (head, found) => {
    const part = [make("h4", head + (found.length ? "" : ": none"))];
    const ul = make("ul"), li = make("li");
    for (const row of found.slice(0, MOST)) li.append(goTo(row));
    if (found.length > MOST) li.append("... and " + (found.length - MOST) + " more");
    ul.append(li);
    if (found.length) part.push(ul);
    return part;
  };
  const nameButton = (use) => {
    const b = make("button", use.name);
    b.type = "button";
    b.use = use;
    return b;
  };
  function showVariable(use) {
    const kind = declared(use);
    const parts = [make("h3", use.name)];
    parts.push(kind === null ? make("p", "declared nowhere that block " + use.at + " sees", "bad") : make("code", kind));
    if (use.at) parts.push(make("p", "of block " + use.at));
    parts.push(...buttons("written by", [...use.writers].sort(before)), ...buttons("read by", [...use.readers].sort(before)));
    panel.replaceChildren(...parts);
  }
  function showOp(row) {
    uses();
    const kind = kindOf(row);
    const formula = data.formulas[kind];
    const parts = [make("h3", title(row))];
    if (formula === null || formula === undefined) parts.push(make("p", "there is no such op type here: the program can be looked at, and cannot run", "bad"));
    else if (formula) parts.push(make("p", formula, "formula"));
    const line = lineOf(row);
    if (line) parts.push(make("p", line));
    if (row.dataset.s !== undefined) parts.push(make("p", "name scope " + data.scopes[row.dataset.s]));
    for (const [head, where] of [["writes", ".o"], ["reads", ".i"]]) {
      const own = row.querySelector(":scope>" + where);
      const found = own ? [...new Set([...own.querySelectorAll("a")].map((a) => a.of))] : [];
      if (!found.length) continue;
      parts.push(make("h4", head));
      const ul = make("ul");
      for (const use of found.slice(0, MOST)) {
        const li = make("li"), kind = declared(use);
        li.append(nameButton(use), " ", kind === null ? make("span", "declared nowhere", "bad") : make("code", kind));
        ul.append(li);
      }
      if (found.length > MOST) ul.append(make("li", "... and " + (found.length - MOST) + " more"));
      parts.push(ul);
    }
    if (row.dataset.q !== undefined) parts.push(make("h4", "besides"), make("code", data.notes[row.dataset.q]));
    if (picture && blockOf(row) === 0) {
      const b = make("button", "in the graph");
      b.type = "button";
      b.box = row;
      parts.push(make("h4", "graph"), b);
    }
    panel.replaceChildren(...parts);
  }
  function show(what) {
    if (shown === what) return;
    shown = what;
    if (what instanceof Element) { mark([]); showOp(what); } else { mark(what.all); showVariable(what); }
    panel.scrollTop = 0;
  }
  const pin = (what) => {
    pinned = what;
    panel.classList.toggle("pinned", what !== null);
    if (what !== null) show(what);
  };
  const targetOf = (e) => {
    if (!(e instanceof Element) || !list.contains(e)) return null;
    const a = e.closest("a");
    if (a && e.closest("li")) { uses(); return a.of || null; }
    return e.closest("ol[data-b]>li");
  };

  // -- going to an op
  let current = null;
  function reveal(row, focus) {
    if (row.hidden) { box.value = ""; search(); }
    for (let e = row.parentElement; e && e !== list; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    setCurrent(row);
    row.scrollIntoView({block: "center"});
    if (focus) row.focus({preventScroll: true});
  }
  function setCurrent(row) {
    if (current) { current.tabIndex = -1; current.classList.remove("at"); }
    current = row;
    row.tabIndex = 0;
    row.classList.add("at");
  }

  // -- the graph: its boxes lead to ops, or to the graph of a group, and ops lead to their boxes
  const picture = root.querySelector(".fj-graph");
  let boxes = null;
  const boxOf = (row) => {
    if (!boxes) boxes = new Map([...picture.querySelectorAll(".fj-node[data-op]")].map((e) => [+e.dataset.op, e]));
    return boxes.get(numberOf(row));
  };
  function showBox(e) {
    for (let d = e.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    for (const other of picture.querySelectorAll(".fj-node.at")) other.classList.remove("at");
    e.classList.add("at");
    e.scrollIntoView({block: "center", inline: "center"});
    e.focus({preventScroll: true});
  }
  function follow(e) {
    if (e.dataset.op !== undefined) {
      const row = list.querySelector("ol[data-b='0']>li[data-n='" + e.dataset.op + "']");
      reveal(row, true);
      pin(row);
      return;
    }
    const own = picture.querySelector("details[data-group='" + e.dataset.group + "']");
    for (let d = own; d; d = d.parentElement.closest("details")) d.open = true;
    const head = own.querySelector("summary");
    head.scrollIntoView({block: "start"});
    head.focus({preventScroll: true});
  }
  if (picture) {
    for (const svg of picture.querySelectorAll("svg")) svg.setAttribute("role", "group");
    for (const e of picture.querySelectorAll(".fj-node")) {
      e.setAttribute("tabindex", "0");
      e.setAttribute("role", "link");
      e.setAttribute("aria-label", e.querySelector("title") ? e.querySelector("title").textContent : e.textContent);
    }
    picture.addEventListener("click", (e) => { const box = e.target.closest(".fj-node"); if (box) follow(box); });
    picture.addEventListener("keydown", (e) => {
      const box = e.target.closest(".fj-node");
      if (box && e.key === "Enter") { e.preventDefault(); e.stopPropagation(); follow(box); }
    });
  }
  const visible = () => rows.filter((r) => !r.hidden && r.getClientRects().length);

  // -- search: every word must stand somewhere in the op's line, its role, its place in the script
  let texts = null, folds = null;
  const textOf = (row) => {
    const own = [...row.childNodes].filter((c) => c.nodeName !== "DETAILS").map((c) => c.textContent).join("");
    const part = row.closest(".fj-role");
    const role = part ? part.querySelector("h2").textContent : "";
    const scope = row.dataset.s === undefined ? "" : data.scopes[row.dataset.s];
    const notes = row.dataset.q === undefined ? "" : data.notes[row.dataset.q];
    return [own, role, lineOf(row), scope, notes].join(" ").toLowerCase();
  };
  function search() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) {
      for (const row of rows) { row.hidden = false; row.classList.remove("hit"); }
      if (folds) for (const [d, open] of folds) { d.hidden = false; d.open = open; }
      folds = null;
      said.textContent = "";
      return;
    }
    if (!texts) texts = rows.map(textOf);
    if (!folds) folds = [...outer].map((d) => [d, d.open]);
    let n = 0;
    const keep = new Set(), open = new Set();
    rows.forEach((row, i) => {
      const hit = words.every((w) => texts[i].includes(w));
      row.classList.toggle("hit", hit);
      if (!hit) return;
      n++;
      for (let e = row; e && e !== list; e = e.parentElement) {
        if (e.tagName === "LI") keep.add(e);
        if (e.tagName === "DETAILS") open.add(e);
      }
    });
    for (const row of rows) row.hidden = !keep.has(row);
    // hidden, not folded: to scroll past a large part that is folded anew takes browsers seconds
    for (const [d] of folds) { d.hidden = !open.has(d); if (open.has(d)) d.open = true; }
    said.textContent = n.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + (rows.length === 1 ? " op" : " ops");
  }
  let waits = 0;
  box.addEventListener("input", () => { clearTimeout(waits); waits = setTimeout(search, rows.length > 500 ? 120 : 0); });
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { box.value = ""; search(); }
    if (e.key === "Enter" || e.key === "ArrowDown") {
      clearTimeout(waits);
      search();
      const first = rows.find((r) => r.classList.contains("hit")) || visible()[0];
      if (first) { e.preventDefault(); reveal(first, true); }
    }
  });
  unfold.addEventListener("click", () => { for (const d of outer) d.open = true; });
  folded.addEventListener("click", () => { for (const d of outer) d.open = false; });

  // -- pointing, clicking, keys
  list.addEventListener("mouseover", (e) => { const t = targetOf(e.target); if (t && pinned === null) show(t); });
  list.addEventListener("focusin", (e) => { const t = targetOf(e.target); if (t instanceof Element && e.target === t) { pinned = null; setCurrent(t); show(t); } });
  list.addEventListener("click", (e) => {
    if (e.target.closest("summary")) return;
    const t = targetOf(e.target);
    if (!t) return;
    const row = e.target.closest("ol[data-b]>li");
    if (row) setCurrent(row);
    pin(t);
  });
  panel.addEventListener("click", (e) => {
    const b = e.target.closest("button");
    if (!b) return;
    if (b.go) { reveal(b.go, true); return; }
    if (b.box) { showBox(boxOf(b.box)); return; }
    if (b.use) {
      pin(b.use);
      const first = panel.querySelector("button");
      (first || panel).focus();
    }
  });
  root.addEventListener("keydown", (e) => {
    if (e.target === box || e.altKey || e.ctrlKey || e.metaKey) return;
    if (e.key === "/" && e.target.tagName !== "INPUT") { e.preventDefault(); box.focus(); return; }
    if (e.key === "Escape" && pinned !== null) {
      pin(null);
      mark([]);
      shown = null;
      if (panel.contains(e.target) && current) current.focus();
      return;
    }
    const row = e.target.matches("ol[data-b]>li") ? e.target : null;
    if (!row) return;
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9}[e.key];
    if (step) {
      e.preventDefault();
      const all = visible(), at = Math.max(0, Math.min(all.length - 1, all.indexOf(row) + step));
      setCurrent(all[at]);
      all[at].focus();
      all[at].scrollIntoView({block: "nearest"});
    }
    if (e.key === "Enter") {
      e.preventDefault();
      pin(row);
      const first = panel.querySelector("button");
      (first || panel).focus();
    }
  });
  for (const row of rows) row.tabIndex = -1;
  if (rows.length) rows[0].tabIndex = 0;
  current = rows[0] || null;
  panel.append(make("p", "Point at an op or a variable, or walk with the arrow keys. A click, or Enter, keeps what is shown; Esc lets go. / searches."));
}

for (const root of document.querySelectorAll(".fj:not([data-ready])")) {
  root.dataset.ready = "";
  enhance(root);
}
})();
