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
    const attrs = row.querySelectorAll(":scope>span:not(.o):not(.i)");
    if (attrs.length) {
      const dl = make("dl");
      for (const a of attrs) {
        const name = a.querySelector("s").textContent, long = a.querySelector(":scope>details");
        const value = long ? long.lastChild.textContent : a.textContent.slice(name.length);
        dl.append(make("dt", name.slice(0, -1)), make("dd", value.length > 400 ? value.slice(0, 400) + " ..." : value));
      }
      parts.push(make("h4", "attributes"), dl);
    }
    if (row.dataset.q !== undefined) parts.push(make("h4", "besides"), make("code", data.notes[row.dataset.q]));
    if (boxOf(row)) {
      const b = make("button", "in the graph"), l = make("button", "in the list");
      for (const e of [b, l]) e.type = "button";
      b.box = row;
      l.go = row;
      parts.push(make("h4", "where"), b, " ", l);
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

  // -- the graph: one at a time on a stage, which zooms; boxes open groups, or tell of ops
  const picture = root.querySelector(".fj-graph");
  const stage = picture ? makeStage() : null;
  function boxOf(row) { return stage ? stage.boxes.get(blockOf(row) + " " + numberOf(row)) : undefined; }
  function rowOf(box) {
    return list.querySelector("ol[data-b='" + (box.dataset.b || 0) + "']>li[data-n='" + box.dataset.op + "']");
  }
  function makeStage() {
    const home = picture.querySelector(":scope>.wide");
    const details = [...picture.querySelectorAll("details[data-group]")];
    // of every graph: its picture, the one around it, its name; of every box what is in it
    const graphs = new Map([["0", {svg: home.querySelector("svg"), up: null, name: "whole"}]]);
    for (const d of details) {
      const around = d.parentElement.closest("details[data-group]");
      graphs.set(d.dataset.group, {
        svg: d.querySelector(":scope>.wide>svg"), up: around ? around.dataset.group : "0",
        name: d.querySelector("b").textContent, told: d.querySelector("small").textContent});
    }
    const boxes = new Map(), own = new Map(), groups = new Map();
    for (const [number, g] of graphs) {
      g.svg.setAttribute("role", "group");
      for (const e of g.svg.querySelectorAll(".fj-node")) {
        own.set(e, number);
        e.setAttribute("tabindex", "0");
        e.setAttribute("role", "button");
        e.setAttribute("aria-label", [...e.querySelectorAll("text")].map((t) => { const w = t.querySelector("title"); return w ? w.textContent : t.textContent; }).join(": "));
        if (e.dataset.op !== undefined) boxes.set((e.dataset.b || 0) + " " + e.dataset.op, e);
        if (e.dataset.group !== undefined) groups.set(e.dataset.group, e);
      }
    }
    const view = make("div", undefined, "fj-stage"), tools = make("div", undefined, "fj-bar");
    view.tabIndex = 0;
    view.setAttribute("role", "region");
    view.setAttribute("aria-label", "graph");
    const trail = make("nav");
    trail.setAttribute("aria-label", "groups");
    const zooms = [["−", "zoom out", 1 / 1.25], ["+", "zoom in", 1.25], ["fit", "show all", 0], ["1:1", "full size", 1]].map(([text, label, by]) => {
      const b = make("button", text);
      b.type = "button";
      b.title = label;
      b.setAttribute("aria-label", label);
      b.addEventListener("click", () => zoomTo(label === "full size" ? 1 : by ? scale * by : fitting()));
      return b;
    });
    tools.append(trail, ...zooms);
    for (const e of [home, ...details]) e.remove();
    picture.querySelector("summary").after(tools, view);
    let at = null, scale = 1;
    const size = () => graphs.get(at).svg.viewBox.baseVal;
    const fitting = () => Math.max(.1, Math.min(1, (view.clientWidth - 4) / size().width, (view.clientHeight - 4) / size().height));
    function zoomTo(to, x, y) {
      const svg = graphs.get(at).svg, from = scale;
      x = x === undefined ? view.clientWidth / 2 : x;
      y = y === undefined ? 0 : y;
      scale = Math.max(.1, Math.min(3, to));
      const left = (view.scrollLeft + x) * scale / from - x, top = (view.scrollTop + y) * scale / from - y;
      svg.setAttribute("width", size().width * scale);
      svg.setAttribute("height", size().height * scale);
      view.scrollTo(left, top);
    }
    function open(number, focus) {
      if (number !== at) {
        at = number;
        view.replaceChildren(graphs.get(at).svg);
        const path = [];
        for (let n = at; n !== null; n = graphs.get(n).up) path.unshift(n);
        trail.replaceChildren(...path.map((n) => {
          const b = make("button", graphs.get(n).name);
          b.type = "button";
          if (n === at) b.setAttribute("aria-current", "true");
          b.addEventListener("click", () => open(n, true));
          return b;
        }));
        scale = 1;
        zoomTo(Math.max(.75, Math.min(1, (view.clientWidth - 4) / size().width)));
        view.scrollTo((size().width * scale - view.clientWidth) / 2, 0);
        lit();
      }
      if (focus) (view.querySelector(".fj-node") || view).focus({preventScroll: true});
    }
    function go(e) {
      picture.open = true;
      open(own.get(e));
      for (const other of view.querySelectorAll(".fj-node.at")) other.classList.remove("at");
      e.classList.add("at");
      e.scrollIntoView({block: "center", inline: "center"});
      e.focus({preventScroll: true});
    }
    // boxes that hold what the search found
    let hits = null;
    function lit(found) {
      if (found !== undefined) {
        hits = found && new Set();
        for (const row of found || []) {
          let e = boxOf(row);
          for (; e && !hits.has(e); e = groups.get(own.get(e))) hits.add(e);
        }
      }
      for (const e of view.querySelectorAll(".fj-node")) e.classList.toggle("hit", hits !== null && hits.has(e));
    }
    function follow(e) {
      if (e.dataset.op !== undefined) {
        if (rowOf(e)) pin(rowOf(e));
        for (const other of view.querySelectorAll(".fj-node.at")) other.classList.remove("at");
        e.classList.add("at");
      }
      if (e.dataset.group !== undefined) {
        open(e.dataset.group, true);
        if (e.dataset.op === undefined) tell(e.dataset.group);
      }
    }
    function tell(number) {
      const g = graphs.get(number), kinds = new Map();
      for (const e of boxes.values()) {
        let n = own.get(e);
        while (n !== null && n !== number) n = graphs.get(n).up;
        if (n === null) continue;
        const kind = e.getAttribute("aria-label").split(/[ :]/)[1];  // "17 relu: the rest"
        kinds.set(kind, (kinds.get(kind) || 0) + 1);
      }
      const ul = make("ul");
      for (const [kind, n] of [...kinds].sort((a, b) => b[1] - a[1])) ul.append(make("li", n + " " + kind));
      shown = g;
      panel.replaceChildren(make("h3", g.name), make("p", g.told), make("h4", "ops"), ul);
      panel.scrollTop = 0;
    }
    view.addEventListener("click", (e) => { const box = e.target.closest(".fj-node"); if (box && !moved) follow(box); });
    view.addEventListener("mouseover", (e) => {
      const box = e.target.closest(".fj-node[data-op]");
      const row = box && rowOf(box);
      if (row && pinned === null) show(row);
    });
    view.addEventListener("keydown", (e) => {
      const box = e.target.closest(".fj-node");
      if (box && (e.key === "Enter" || e.key === " ")) { e.preventDefault(); e.stopPropagation(); follow(box); return; }
      if (e.key === "Backspace" && graphs.get(at).up !== null) { e.preventDefault(); const from = at; open(graphs.get(at).up); go(groups.get(from)); return; }
      const by = {"+": 1.25, "=": 1.25, "-": 1 / 1.25}[e.key];
      if (by && !e.ctrlKey && !e.metaKey) { e.preventDefault(); zoomTo(scale * by); }
    });
    view.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      const r = view.getBoundingClientRect();
      zoomTo(scale * Math.exp(-e.deltaY / 300), e.clientX - r.left, e.clientY - r.top);
    }, {passive: false});
    // a mouse drags the picture; fingers scroll it as they scroll everything
    let drag = null, moved = false;
    view.addEventListener("pointerdown", (e) => {
      moved = false;
      if (e.pointerType === "mouse" && e.button === 0) drag = [e.clientX + view.scrollLeft, e.clientY + view.scrollTop];
    });
    view.addEventListener("pointermove", (e) => {
      if (!drag || !(e.buttons & 1)) { drag = null; return; }
      const x = drag[0] - e.clientX, y = drag[1] - e.clientY;
      if (!moved && Math.abs(x - view.scrollLeft) + Math.abs(y - view.scrollTop) < 5) return;
      moved = true;
      view.scrollTo(x, y);
    });
    queueMicrotask(() => open("0"));
    return {boxes, go, lit};
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
      if (stage) stage.lit(null);
      return;
    }
    if (!texts) texts = rows.map(textOf);
    if (!folds) folds = [...outer].map((d) => [d, d.open]);
    let n = 0;
    const keep = new Set(), open = new Set(), found = [];
    rows.forEach((row, i) => {
      const hit = words.every((w) => texts[i].includes(w));
      row.classList.toggle("hit", hit);
      if (!hit) return;
      n++;
      found.push(row);
      for (let e = row; e && e !== list; e = e.parentElement) {
        if (e.tagName === "LI") keep.add(e);
        if (e.tagName === "DETAILS") open.add(e);
      }
    });
    for (const row of rows) row.hidden = !keep.has(row);
    // hidden, not folded: to scroll past a large part that is folded anew takes browsers seconds
    for (const [d] of folds) { d.hidden = !open.has(d); if (open.has(d)) d.open = true; }
    if (stage) stage.lit(found);
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
    if (b.box) { stage.go(boxOf(b.box)); return; }
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
