// A client that speaks A2A by the npm SDK: node client.mjs URL JSONRPC|HTTP+JSON VERB ARGS. It prints a line of JSON for each
// task and event that it gets, and {"error": NAME, "message": TEXT} if a call fails. In its environment, A2A_TOKEN goes with
// each request, and A2A_AGENT is the agent of a new task. The verbs: card, send TEXT [TASK], begin TEXT, stream TEXT, get TASK,
// cancel TASK, resubscribe TASK, list.
import { randomUUID } from 'node:crypto';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

const [url, binding, verb, subject, task] = process.argv.slice(2);

const fetchImpl = (at, init = {}) => {
  const headers = new Headers(init.headers);
  if (process.env.A2A_TOKEN) headers.set('Authorization', `Bearer ${process.env.A2A_TOKEN}`);
  return fetch(at, { ...init, headers });
};

const textOf = (parts) => (parts ?? []).map((p) => (p.content?.$case === 'text' ? p.content.value : `[${p.content?.$case}]`)).join('');
const stateOf = (status) => TaskState[status?.state]?.replace('TASK_STATE_', '');
const show = (kind, value) => console.log(JSON.stringify({
  kind, id: value.taskId || value.id, context: value.contextId, state: stateOf(value.status),
  text: textOf(value.status?.message?.parts ?? value.parts ?? value.artifact?.parts), name: value.artifact?.name,
  artifacts: value.artifacts?.map((a) => ({ name: a.name, text: textOf(a.parts) })),
}));
const showResult = (value) => show('status' in value ? 'task' : 'message', value);
const showAll = async (events) => {
  for await (const event of events) show(event.payload.$case, event.payload.value);
};

const message = (words, taskId = '') => ({
  messageId: randomUUID(), role: Role.ROLE_USER, taskId, contextId: '', extensions: [], referenceTaskIds: [],
  metadata: taskId ? {} : { agent: process.env.A2A_AGENT },
  parts: [{ content: { $case: 'text', value: words }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
});
const configuration = (returnImmediately) => ({ acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately });
const request = (more) => ({ tenant: '', metadata: {}, configuration: configuration(false), ...more });

try {
  const transport = binding === 'JSONRPC' ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl });
  const factory = new ClientFactory({ transports: [transport], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) });
  const client = await factory.createFromUrl(url);
  switch (verb) {
    case 'card': {
      const card = await client.getAgentCard();
      console.log(JSON.stringify({ name: card.name, skills: card.skills.map((s) => s.id) }));
      break;
    }
    case 'send': showResult(await client.sendMessage(request({ message: message(subject, task) }))); break;
    case 'begin': showResult(await client.sendMessage(request({ message: message(subject), configuration: configuration(true) }))); break;
    case 'stream': await showAll(client.sendMessageStream(request({ message: message(subject) }))); break;
    case 'get': showResult(await client.getTask({ tenant: '', id: subject, historyLength: undefined })); break;
    case 'cancel': showResult(await client.cancelTask({ tenant: '', id: subject, metadata: {} })); break;
    case 'resubscribe': await showAll(client.resubscribeTask({ tenant: '', id: subject })); break;
    case 'list': {
      const all = await client.listTasks({ tenant: '', contextId: '', pageToken: '', status: TaskState.TASK_STATE_UNSPECIFIED });
      all.tasks.forEach(showResult);
      break;
    }
    default: throw new Error(`unknown verb ${verb}`);
  }
} catch (error) {
  console.log(JSON.stringify({ error: error.name, message: error.message }));
  process.exitCode = 1;
}
