// The page is whole without this file. It keeps the page fresh, streams output, and adds keys.
const $ = (query, of = document) => of.querySelector(query);
const all = (query, of = document) => [...of.querySelectorAll(query)];

// Opening: the secret is in the fragment, which no browser sends by itself.
const login = $("#login");
if (login && location.hash.length > 20) {
  login.elements.secret.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  login.submit();
}

// morph makes one tree of nodes like another and keeps what is equal, so that focus, open details
// and the place of a reader stay.
function morph(have, want) {
  if (want.nodeType === 1 && want.hasAttribute("data-same")) return; // a row as the browser has it
  if (have.nodeType !== want.nodeType || have.nodeName !== want.nodeName || (have.id || "") !== (want.id || "")) {
    have.replaceWith(want);
    return;
  }
  if (have.nodeType !== 1) {
    if (have.data !== want.data) have.data = want.data;
    return;
  }
  if (have.isEqualNode(want) || have.hasAttribute("data-keep")) return;
  for (const { name } of [...have.attributes]) {
    if (!want.hasAttribute(name) && !(name === "open" && have.nodeName === "DETAILS")) have.removeAttribute(name);
  }
  for (const { name, value } of [...want.attributes]) {
    if (have.getAttribute(name) !== value) have.setAttribute(name, value);
  }
  if (have.nodeName === "TEXTAREA" || have.nodeName === "SELECT") return;
  const keyed = new Map([...have.children].filter((c) => c.id).map((c) => [c.id, c]));
  let next = have.firstChild;
  for (const child of [...want.childNodes]) {
    const same = child.id ? keyed.get(child.id) : next && !next.id && next.nodeName === child.nodeName ? next : null;
    if (!same) {
      have.insertBefore(child, next);
    } else if (same === next) {
      next = next.nextSibling;
      morph(same, child);
    } else {
      have.insertBefore(same, next);
      morph(same, child);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// fetchPage gets a page as a document, in which no script runs.
function fetchPage(url) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.responseType = "document";
    request.setRequestHeader("Kept", all("[data-keep][id]").map((e) => e.id).join(" ")); // the answer leaves these out
    request.setRequestHeader("Rows", all("[data-v][id]").map((e) => e.id + "=" + e.dataset.v).join(" ")); // as these
    request.onload = () => (request.response ? done(request) : failed());
    request.onerror = failed;
    request.send();
  });
}

let last = Number(document.body.dataset.last) || 0;
let busy = false, again = false, heard = "", heardAt = 0, later = 0;

async function refresh() {
  if ("still" in document.body.dataset) return; // the answer to a form
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  const began = performance.now(), url = location.href;
  try {
    const { response, status } = await fetchPage(url);
    if (status === 401) location.reload();
    else if (url !== location.href) again = true;
    else if (status === 503) state("down");
    else show(response);
  } catch {
    state("ended"); // nobody answers at the port
  }
  const took = performance.now() - began;
  setTimeout(() => {
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }, Math.max(150, 2 * took));
}

function show(page) {
  last = Math.max(last, Number(page.body.dataset.last) || 0);
  document.title = page.title;
  morph($("#main"), $("#main", page));
  if ($("nav", page)) morph($("nav"), $("nav", page));
  ready();
}

// announce tells screen readers what changed, at most every five seconds.
function announce() {
  const words = $("[data-announce]")?.dataset.announce, wait = heardAt + 5000 - Date.now();
  clearTimeout(later);
  if (!words || words === heard) return;
  if (wait > 0) {
    later = setTimeout(announce, wait);
    return;
  }
  if (heard) $("#live").textContent = words;
  [heard, heardAt] = [words, Date.now()];
}

function state(now) {
  const link = $("#link");
  if (link && link.dataset.state !== now) {
    link.dataset.state = now;
    link.textContent = now === "live" ? "Live" : now === "down" ? "Waiting" : "Ended";
    const gone = $("#gone");
    gone.dataset.state = now;
    gone.hidden = now === "live";
  }
}

// The connection says which event is the newest, and what the agent writes. All tabs have one, if the browser can share it.
let port = null;
let stale = !last; // the page is an error, or the connection was lost
let output = null, ended = null; // where the output is shown, and where it is over
function connect() {
  const file = new URL("/live.js" + new URL(import.meta.url).search, location);
  const join = (to) => {
    port = to;
    port.onmessage = receive;
    want();
  };
  const alone = () => {
    const { port1, port2 } = new MessageChannel();
    import(file).then((live) => live.serve(port1));
    join(port2);
  };
  if (!window.SharedWorker) return alone();
  const rule = window.trustedTypes?.createPolicy("live", { createScriptURL: (url) => url });
  const worker = new SharedWorker(rule?.createScriptURL(file) ?? file, { type: "module" });
  worker.onerror = alone;
  join(worker.port);
}

// shown is where the output of a run is shown that is not over.
function shown() {
  const pre = $("pre[data-output]");
  return document.hidden || pre === ended ? null : pre;
}

// want says what this tab wants: nothing while nobody looks.
function want() {
  const now = shown();
  if (now !== output) output?.removeAttribute("data-keep");
  if (now && now !== output) {
    now.setAttribute("data-keep", "");
    now.scrollTop = now.scrollHeight;
  }
  output = now;
  port?.postMessage(document.hidden ? null : { last, output: now?.dataset.output });
}

function receive({ data }) {
  if (data.state === "anew") location.reload();
  else if (data.state === "lost" || data.state === "down") {
    stale = true;
    if (data.state === "down") state("down");
    else refresh(); // finds out who is gone
  } else if (data.state === "live") {
    state("live");
    if (stale) refresh();
    stale = false;
  }
  if (data.last > last) {
    last = data.last;
    state("live");
    refresh();
  }
  if (!data.id || data.id !== output?.dataset.output) return;
  const low = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
  if (data.text !== undefined && output.textContent !== data.text) output.textContent = data.text;
  if (low) output.scrollTop = output.scrollHeight;
  if (data.end) {
    ended = output;
    want();
    refresh();
  }
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && port) refresh();
  want();
});
addEventListener("pagehide", () => port?.postMessage(null));
addEventListener("pageshow", (e) => e.persisted && want());

// go shows another URL of the same page, such as another filter.
let typing = 0;
function go(url) {
  history.replaceState(null, "", url);
  refresh();
}
function urlOf(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  return form.getAttribute("action") + (String(query) && "?" + query);
}
document.addEventListener("input", (e) => {
  const form = e.target.closest("form[data-live]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => go(urlOf(form)), e.target.type === "range" ? 30 : 200);
});
document.addEventListener("submit", (e) => {
  if (e.target.matches("form[data-live]")) {
    e.preventDefault();
    go(urlOf(e.target));
  } else if (e.target.method === "post" && !e.target.dataset.passkey) {
    all("button", e.target).forEach((b) => setTimeout(() => (b.disabled = true)));
  }
});

// ready connects what is new on the page.
function ready() {
  if (port && shown() !== output) want();
  announce();
}

function age(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  return s < 60 ? s + "s" : s < 3600 ? Math.floor(s / 60) + "m" : s < 172800 ? Math.floor(s / 3600) + "h" : Math.floor(s / 86400) + "d";
}
setInterval(() => {
  if (document.hidden) return;
  for (const time of all("time[data-age]")) {
    const words = age((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== words) time.textContent = words;
  }
  if ($("[data-poll]")) refresh();
}, 1000);

// Keys. A person can turn them off, since speech input types letters. The port of the page changes,
// and only cookies ignore it.
const single = $("#single");
if (single) {
  single.checked = !document.cookie.includes("keys=off");
  single.addEventListener("change", () => (document.cookie = `keys=${single.checked ? "on" : "off"}; path=/; max-age=31536000; samesite=strict`));
}
$("#show-keys")?.addEventListener("click", () => $("#keys").showModal());
document.addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key === "k" && $("#link")) {
    e.preventDefault();
    import("/palette.js").then((palette) => palette.open());
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input:not([type=range]), textarea, select, dialog[open]")) {
    if (e.key === "Escape") e.target.blur?.();
    return;
  }
  if (single && !single.checked) return;
  const rows = all("[data-row]"), at = rows.findIndex((r) => r.contains(document.activeElement));
  const focus = (row) => row && $("a", row).focus();
  const keys = {
    j: () => focus(rows[Math.min(at + 1, rows.length - 1)]),
    k: () => focus(rows[Math.max(at - 1, 0)]),
    "/": () => ($("input[type=search]") ? $("input[type=search]").focus() : location.assign("/tasks#text")),
    "?": () => $("#keys")?.showModal(),
    a: () => (rows.length && at < 0 ? null : $("button[data-verb=approve]", rows[at] ?? document)?.click()),
  };
  if (keys[e.key]) {
    e.preventDefault();
    keys[e.key]();
  }
});

if (location.hash === "#text") $("#text")?.focus();
ready();
if ($("#link")) connect();
