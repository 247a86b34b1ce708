// The command palette: pages, what can be done here, and tasks, by words. It is loaded when it is opened first.
const make = (tag, props = {}, ...inside) => {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...inside);
  return node;
};
const input = make("input", { type: "search", autocomplete: "off" });
const list = make("ul", { role: "listbox", id: "palette-list" });
const dialog = make("dialog", { className: "palette" }, input, list);
input.setAttribute("role", "combobox");
input.setAttribute("aria-label", "Search for pages, actions and tasks");
input.setAttribute("aria-controls", "palette-list");
input.setAttribute("aria-expanded", "true");
dialog.setAttribute("aria-label", "Commands");
document.body.append(dialog);

let at = 0, asked = 0, timer = 0;
const visit = (url) => () => location.assign(url);

// here are the pages, and the buttons of the page or of the chosen row.
function here() {
  const pages = [...document.querySelectorAll("header nav a")].map((a) => ["Go to " + (a.firstChild?.textContent ?? a.textContent).trim(), visit(a.href)]);
  const links = [...document.querySelectorAll("main a.button")].map((a) => [a.textContent.trim(), visit(a.href)]);
  const buttons = [...document.querySelectorAll("main button")].filter((b) => b.textContent && b.checkVisibility());
  const acts = buttons.map((b) => [b.getAttribute("aria-label") ?? b.textContent.trim(), () => (b.focus(), b.click())]);
  return [...acts, ...links, ["Send a task", visit("/send")], ...pages];
}

function show(all) {
  at = 0;
  list.replaceChildren(...all.map(([words, run], i) => {
    const row = make("li", { id: "palette-" + i, onclick: run }, words);
    row.setAttribute("role", "option");
    return row;
  }));
  mark();
}

function mark() {
  [...list.children].forEach((row, i) => row.setAttribute("aria-selected", i === at));
  input.setAttribute("aria-activedescendant", list.children[at]?.id ?? "");
  list.children[at]?.scrollIntoView({ block: "nearest" });
}

// find shows what has the words: actions at once, and tasks when the server has found them.
async function find() {
  const words = input.value.trim().toLowerCase(), mine = ++asked;
  const known = here().filter(([name]) => words.split(/\s+/).every((w) => name.toLowerCase().includes(w))).slice(0, 30);
  show(known);
  if (!words) return;
  const request = new XMLHttpRequest();
  request.open("GET", "/tasks?text=" + encodeURIComponent(words));
  request.responseType = "document";
  request.onload = () => {
    if (mine !== asked || !request.response) return;
    const rows = [...request.response.querySelectorAll("[data-row]")].slice(0, 20);
    const chosen = at;
    show([...known, ...rows.map((row) => {
      const a = row.querySelector("a.name");
      return [a.textContent.trim() + ": " + (row.querySelector(".two")?.textContent.trim() ?? ""), visit(a.getAttribute("href"))];
    })]);
    at = Math.min(chosen, list.children.length - 1);
    mark();
  };
  request.send();
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, 80);
});
dialog.addEventListener("keydown", (e) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (step) {
    at = (at + step + list.children.length) % Math.max(1, list.children.length);
    mark();
  } else if (e.key === "Enter") {
    const row = list.children[at];
    dialog.close();
    row?.click();
  } else return;
  e.preventDefault();
});
dialog.addEventListener("click", (e) => e.target === dialog && dialog.close());

export function open() {
  if (dialog.open) return;
  input.value = "";
  show(here().slice(0, 30));
  dialog.showModal();
  input.focus();
}
