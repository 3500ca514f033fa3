// The scenarios of the matrix, told in terms that every SDK has. A driver opens conversations:
//
//	model                      the model that answers next
//	user(text, picture)        adds a message
//	results([{id, name, text}])  adds the results of the calls
//	ask({tools, thinking, schema, whole, signal, onText})
//	                           streams one answer, or gets it whole, adds it in the SDK's own way, and returns
//	                           {text, thinking, calls: [{id, name, args}], finish, usage: {input, output}}
//	converse(options)          optional: the SDK's own loop of calls and results; returns the last answer with all calls
//
// and says what an error is: fault(error) returns {status, limited, refused, aborted}; limited and refused are whether
// it is the SDK's own class for a status of 429 and of 400.
import assert from 'node:assert/strict';

import {collect} from './dropped.mjs';
import {expected, matrix} from './matrix.mjs';

const told = names => names?.map(name => ({name, ...matrix.tools[name]}));

async function converse(conversation, options) {
  if (conversation.converse) return conversation.converse(options);
  const calls = [];
  for (let step = 0; step < 4; step++) {
    const answer = await conversation.ask(options);
    calls.push(...answer.calls);
    if (answer.calls.length === 0) return {...answer, calls};
    conversation.results(answer.calls.map(call => ({...call, text: matrix.tools[call.name].result})));
  }
  throw new Error('the model calls tools again and again');
}

async function failure(promise) {
  let answer;
  try {
    answer = await promise;
  } catch (error) {
    return error;
  }
  assert.fail(`no error but the answer ${JSON.stringify(answer)}`);
}

function says(answer, texts, finish) {
  for (const text of texts) assert.match(answer.text, new RegExp(text));
  if (finish) assert.equal(answer.finish, finish);
  else assert.notEqual(answer.finish, 'failed');
}

// calling has the model call its tools, answers, and reads what it makes of the results.
export async function calling(conversation, e, prompt) {
  conversation.user(prompt);
  const answer = await converse(conversation, {tools: told(e.tools), thinking: true, whole: e.whole});
  assert.deepEqual(answer.calls.map(c => [c.name, c.args]), e.tools.map(name => [name, {city: 'Oslo'}]));
  const ids = answer.calls.map(c => c.id).filter(id => id); // Gemini's calls may have none
  assert.equal(new Set(ids).size, ids.length, 'calls that share an id');
  says(answer, e.says, e.finish);
}

const scenarios = {
  async text(conversation, e) {
    conversation.user(e.prompt);
    const answer = await conversation.ask({});
    says(answer, e.says, e.finish);
    assert.equal(answer.thinking, '');
    assert.ok(answer.usage.input > 0 && answer.usage.output > 0, `usage ${JSON.stringify(answer.usage)}`);
  },

  async thinking(conversation, e) {
    conversation.user(e.prompt);
    const answer = await conversation.ask({thinking: true});
    says(answer, e.says, e.finish);
    assert.equal(answer.thinking.slice(0, e.thinks.length || undefined), e.thinks);
  },

  'one call': (conversation, e) => calling(conversation, e, e.prompt),

  'parallel calls': (conversation, e) => calling(conversation, e, e.prompt),

  'not streamed': (conversation, e) => calling(conversation, e, e.prompt),

  async hop(conversation, e, egress) {
    const home = conversation.model;
    for (const model of [home, egress.hop, home]) {
      conversation.model = model;
      await calling(conversation, e, e.prompt);
    }
    conversation.user(e.then);
    says(await conversation.ask({tools: told(e.tools), thinking: true}), e.thenSays, e.finish);
  },

  async image(conversation, e) {
    conversation.user(e.prompt, matrix.picture);
    says(await conversation.ask({}), e.says, e.finish);
  },

  async 'structured output'(conversation, e) {
    conversation.user(e.prompt);
    if (e.value !== null) {
      assert.deepEqual(JSON.parse((await conversation.ask({schema: e.schema})).text), e.value);
      return;
    }
    // Some SDKs do not take an answer that does not fit; their error holds it.
    const answer = await conversation.ask({schema: e.schema}).catch(error => {
      if (typeof error.text !== 'string') throw error;
      return error;
    });
    says(answer, e.says);
  },

  async length(conversation, e) {
    conversation.user(e.prompt);
    const answer = await conversation.ask({});
    assert.equal(answer.finish, e.finish);
    assert.ok(answer.text.length > 0);
  },

  async refusal(conversation, e) {
    conversation.user(e.prompt);
    assert.equal((await conversation.ask({})).finish, e.finish);
  },

  async filter(conversation, e) {
    conversation.user(e.prompt);
    assert.equal((await conversation.ask({})).finish, e.finish);
  },

  async empty(conversation, e) {
    conversation.user(e.prompt);
    says(await conversation.ask({}), e.says);
  },

  async error(conversation, e, _, driver) {
    conversation.user(e.prompt);
    const error = await failure(conversation.ask({}));
    const fault = driver.fault(error);
    assert.equal(fault.status, e.status, error.message);
    assert.ok(fault.limited, `${error.constructor.name} is not the SDK's error of a rate limit`);
  },

  async broken(conversation, e, _, driver) {
    conversation.user(e.prompt);
    let text = '';
    const error = await failure(conversation.ask({onText: piece => (text += piece)}).then(answer => {
      if (answer.finish === 'failed') throw new Error('the answer failed');
      return answer;
    }));
    assert.ok(text.length > 0, `nothing was streamed before: ${error.stack}`);
    assert.ok(!driver.fault(error).aborted, error.message);
  },

  async abort(conversation, e, _, driver) {
    conversation.user(e.prompt);
    const controller = new AbortController();
    let text = '';
    const error = await failure(conversation.ask({
      signal: controller.signal,
      onText(piece) {
        text += piece;
        controller.abort();
      },
    }));
    assert.ok(driver.fault(error).aborted, `${error.constructor.name} is not the SDK's error of an abort: ${error.message}`);
    assert.ok(text.length < 1500, `${text.length} characters came before the end`);
  },
};

// The ways an SDK has to bring its calls back, each of which is tried.
const called = new Set(['one call', 'parallel calls']);

// cells are the tests of one SDK on one egress.
export function cells(sdk) {
  return Object.keys(matrix.scenarios).flatMap(scenario =>
    called.has(scenario) ? sdk.calls.map(way => ({scenario, way, name: `${scenario}: ${way}`})) : [{scenario, way: sdk.calls[0], name: scenario}],
  );
}

// run plays a scenario.
export async function run(driver, sdk, egress, {scenario, way}) {
  const e = expected(sdk.id, egress.id, scenario);
  const play = () => scenarios[e.breaks ? 'broken' : scenario](driver.open(egress.id, way), e, egress, driver);
  if (!e.refused) {
    const dropped = (await collect(play)).filter(name => !egress.passesOver?.includes(name));
    assert.deepEqual(dropped, e.dropped ?? [], 'what was dropped of the requests');
    return;
  }
  const error = await failure(play().then(() => `of the scenario, where a status of ${e.refused} was expected`));
  const fault = driver.fault(error);
  assert.equal(fault.status, e.refused, error.stack);
  assert.ok(fault.refused, `${error.constructor.name} is not the SDK's error of a bad request`);
}
