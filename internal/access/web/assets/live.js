// One connection for all tabs: in a shared worker where the browser has it, and in each tab otherwise. A tab says which event
// it has, and whose output it shows. It gets the numbers of new events, and that output.
const tabs = new Map(); // what each one wants, by its port
const texts = new Map(); // the end of each output
const most = 64 << 10;
let stream = null, opened = "", last = 0, state = "", timer = 0;

const tell = (message, to = () => true) => tabs.forEach((want, port) => to(want) && port.postMessage(message));

// connect has the stream be what the tabs want. Without a tab there is none: a browser has six connections to a host.
function connect() {
  clearTimeout(timer);
  const ids = [...new Set([...tabs.values()].map((want) => want.output))].filter(Boolean).sort();
  const wanted = tabs.size ? "open" + ids.map((id) => "&output=" + encodeURIComponent(id)).join("") : "";
  if (wanted === opened) return;
  stream?.close();
  opened = wanted;
  for (const id of texts.keys()) if (!ids.includes(id)) texts.delete(id);
  if (!wanted) return;
  stream = new EventSource("/live?after=" + last + wanted.slice(4));
  const say = (now) => tell({ state: (state = now) });
  stream.onopen = () => say("live");
  stream.onmessage = (e) => tell({ last: (last = Number(e.data)) });
  stream.addEventListener("down", () => say("down"));
  stream.addEventListener("up", () => say("live"));
  stream.addEventListener("anew", () => {
    last = 0;
    tell({ state: "anew" });
  });
  stream.addEventListener("output", (e) => {
    const { id, anew, text = "", end } = JSON.parse(e.data);
    if (!anew || text) texts.set(id, ((anew ? "" : texts.get(id) ?? "") + text).slice(-most));
    tell({ id, text: texts.get(id), end }, (want) => want.output === id);
  });
  stream.onerror = () => {
    stream.close();
    opened = "";
    say("lost");
    timer = setTimeout(connect, 1000);
  };
}

// serve connects a tab. It says null when nobody looks at it.
export function serve(port) {
  port.onmessage = ({ data }) => {
    if (!data) tabs.delete(port);
    else {
      last = Math.max(last, data.last);
      tabs.set(port, data);
    }
    connect();
    if (!data) return;
    if (opened && stream.readyState === 1) port.postMessage({ state, last });
    if (texts.has(data.output)) port.postMessage({ id: data.output, text: texts.get(data.output) });
  };
}
self.onconnect = (e) => serve(e.ports[0]);
