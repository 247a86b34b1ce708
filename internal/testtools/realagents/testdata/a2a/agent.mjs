// An agent that speaks A2A by the npm SDK: node agent.mjs JSONRPC|HTTP+JSON. It prints its address, and a line of JSON
// for each message and each cancellation that it gets. A message says what it does: "do ask". With AGENT_TOKEN in its
// environment, each request needs that token.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { AGENT_CARD_PATH, Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const binding = process.argv[2];
const log = (entry) => console.log(JSON.stringify(entry));

const part = (content, more = {}) => ({ content, metadata: undefined, filename: '', mediaType: '', ...more });
const text = (value) => part({ $case: 'text', value }, { mediaType: 'text/plain' });
const textsOf = (message) => message.parts.filter((p) => p.content?.$case === 'text').map((p) => p.content.value);

class Executor {
  stops = new Map(); // what stops the work of a task

  cancelTask = async (taskId) => {
    log({ got: 'cancel', taskId });
    this.stops.get(taskId)?.();
  };

  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const words = textsOf(userMessage).join('\n');
    log({ got: 'message', messageId: userMessage.messageId, contextId: userMessage.contextId, taskId: userMessage.taskId, words });

    const saying = (words) => ({
      role: Role.ROLE_AGENT, messageId: randomUUID(), parts: [text(words)],
      taskId, contextId, extensions: [], metadata: {}, referenceTaskIds: [],
    });
    const status = (state, words) => bus.publish(AgentEvent.statusUpdate({
      taskId, contextId, metadata: {},
      status: { state, timestamp: new Date().toISOString(), message: words ? saying(words) : undefined },
    }));
    const artifact = (artifactId, name, parts, more = {}) => bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append: false, lastChunk: true, metadata: {}, ...more,
      artifact: { artifactId, name, description: '', parts, metadata: {}, extensions: [] },
    }));

    const does = words.match(/\bdo (\w+)/)?.[1];
    if (does === 'message') {
      bus.publish(AgentEvent.message(saying('a message, and no task')));
      bus.finished();
      return;
    }
    if (!context.task) {
      bus.publish(AgentEvent.task({
        id: taskId, contextId, artifacts: [], history: [userMessage], metadata: {},
        status: { state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined },
      }));
    } else {
      bus.publish(AgentEvent.task(context.task)); // the SDK wants a task as the first event
      status(TaskState.TASK_STATE_COMPLETED, `the colour is ${words}`);
      bus.finished();
      return;
    }
    status(TaskState.TASK_STATE_WORKING, 'began');
    switch (does) {
      case 'complete':
        artifact('a1', 'report.txt', [text('the text of the report\n')]);
        artifact('a2', 'bytes.bin', [
          part({ $case: 'raw', value: Buffer.from([0, 1, 2, 255]) }, { filename: 'bytes.bin', mediaType: 'application/octet-stream' }),
        ]);
        status(TaskState.TASK_STATE_COMPLETED, 'it is complete');
        break;
      case 'stream':
        for (const step of [1, 2, 3]) {
          status(TaskState.TASK_STATE_WORKING, `step ${step}`);
          artifact('a1', 'steps.txt', [text(`line ${step}\n`)], { append: step > 1, lastChunk: step === 3 });
        }
        status(TaskState.TASK_STATE_COMPLETED, 'all steps are done');
        break;
      case 'ask': status(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which colour?'); break;
      case 'login': status(TaskState.TASK_STATE_AUTH_REQUIRED, 'Log in at the agent.'); break;
      case 'fail': status(TaskState.TASK_STATE_FAILED, 'it went wrong'); break;
      case 'reject': status(TaskState.TASK_STATE_REJECTED, 'no such work here'); break;
      case 'wait':
        await new Promise((resolve) => this.stops.set(taskId, resolve));
        this.stops.delete(taskId);
        status(TaskState.TASK_STATE_CANCELED, 'stopped');
        break;
      default: status(TaskState.TASK_STATE_FAILED, `unknown work: ${words}`);
    }
    bus.finished();
  }
}

const app = express();
app.use((request, response, next) => {
  const token = process.env.AGENT_TOKEN;
  if (token && request.headers.authorization !== `Bearer ${token}`) {
    response.status(401).end();
    return;
  }
  next();
});
const server = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const requestHandler = new DefaultRequestHandler({
    name: 'node', description: 'An agent of the npm SDK', version: '1.0.0', documentationUrl: '', signatures: [],
    supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: binding, tenant: '', protocolVersion: '1.0' }],
    provider: undefined, securitySchemes: {}, securityRequirements: [],
    capabilities: { streaming: process.env.AGENT_STREAMING !== 'no', pushNotifications: false, extensions: [], extendedAgentCard: false },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{
      id: 'work', name: 'Work', description: 'Does what the message says', tags: ['test'],
      examples: [], inputModes: [], outputModes: [], securityRequirements: [],
    }],
  }, new InMemoryTaskStore(), new Executor());
  const handler = binding === 'JSONRPC' ? jsonRpcHandler : restHandler;
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a', handler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(url);
});
