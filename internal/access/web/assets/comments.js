// Comments on lines of a difference. Each is a field below its line, which belongs to the form that denies.
const denial = () => document.querySelector("form[data-comments]");
const lineOf = (node) => node.closest?.("pre.code [data-n]:not(.old)");

// comment adds a field below a line, or goes to the one that is there.
function comment(line) {
  const form = denial(), pre = line.closest("pre.code");
  if (!form || !pre.closest("[data-patch]")) return;
  if (line.nextElementSibling?.matches(".say")) return line.nextElementSibling.querySelector("textarea").focus();
  const kind = ["plus", "minus"].find((c) => line.classList.contains(c)) || "same";
  const name = pre.closest("details").querySelector("bdi").textContent;
  const box = document.createElement("span");
  box.className = "say " + kind;
  box.append(field("textarea", "comment", ""), field("input", "at", [pre.dataset.file, kind, line.dataset.n].join(" ")));
  box.firstChild.setAttribute("aria-label", `Comment on ${name}, line ${line.dataset.n}`);
  const remove = document.createElement("button");
  Object.assign(remove, { type: "button", className: "plain", textContent: "Remove the comment" });
  remove.addEventListener("click", () => {
    box.remove();
    count();
    line.focus();
  });
  box.append(remove);
  line.after(box);
  count();
  box.firstChild.focus();

  function field(tag, name, value) {
    const one = document.createElement(tag);
    if (tag === "input") one.type = "hidden";
    one.name = name;
    one.value = value;
    one.setAttribute("form", form.id);
    return one;
  }
}

// count proposes to have the task done once more as soon as there is a comment.
function count() {
  const form = denial();
  if (form) form.elements.again.checked = !!document.querySelector(".say");
}

// step chooses another line of a file.
function step(pre, line, by) {
  const lines = [...pre.querySelectorAll("[data-n]:not(.old)")];
  const next = lines[line ? lines.indexOf(line) + by : by > 0 ? 0 : lines.length - 1];
  if (!next) return;
  next.tabIndex = -1;
  next.focus();
}

document.addEventListener("click", (e) => {
  const line = lineOf(e.target);
  if (line && !String(getSelection())) comment(line);
});
document.addEventListener("keydown", (e) => {
  const pre = e.target.closest("pre.code"), line = lineOf(e.target);
  if (!pre || e.target.matches("textarea, button") || !denial()) return;
  const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!by && !(e.key === "Enter" && line)) return;
  e.preventDefault();
  if (by) step(pre, line, by);
  else comment(line);
});

// start lets the keyboard reach the files of a difference that can be commented.
function start() {
  if (denial()) for (const pre of document.querySelectorAll("[data-patch] pre.code")) pre.tabIndex = 0;
}
start();
new MutationObserver(start).observe(document.querySelector("#main"), { childList: true, subtree: true });
