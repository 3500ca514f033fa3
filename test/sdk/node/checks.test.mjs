// What the SDKs can do besides conversing: list models, embed, count tokens; and the Codex CLI.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {describe, it} from 'node:test';
import {fileURLToPath} from 'node:url';

import './lib/dropped.mjs';
import {drivers} from './drivers/index.mjs';
import {anthropic0, anthropic1} from './drivers/anthropic.mjs';
import * as google from './drivers/genai.mjs';
import * as openai from './drivers/openai.mjs';
import {apiKey, expected, matrix, record, url} from './lib/matrix.mjs';
import {calling} from './lib/scenarios.mjs';

const sdks = {openai, 'anthropic 1': anthropic1, 'anthropic 0': anthropic0, 'google genai': google};

const checks = {
  async models(sdk) {
    const ids = await sdks[sdk].models();
    assert.equal(new Set(ids).size, ids.length, `a model stands twice: ${ids}`);
    for (const {id} of matrix.egresses) assert.ok(ids.includes(id), `${id} is not among ${ids}`);
  },

  async embeddings(sdk, egress) {
    const {vectors, tokens} = await sdks[sdk].embed(egress, ['a green apple', 'a red apple', 'some railway station']);
    assert.equal(vectors.length, 3);
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    for (const v of vectors) {
      assert.equal(v.length, 256);
      assert.ok(Math.abs(dot(v, v) - 1) < 1e-3, `the length of a vector is ${dot(v, v)}`);
    }
    assert.ok(dot(vectors[0], vectors[1]) > 0.4 && Math.abs(dot(vectors[0], vectors[2])) < 0.25, 'texts of the same words are not nearer');
    if (sdk === 'openai') assert.ok(tokens > 0, `${tokens} tokens`);
  },

  async 'count tokens'(sdk, egress) {
    const one = await sdks[sdk].count(egress, 'Greet the town of Oslo');
    const many = await sdks[sdk].count(egress, 'Greet the town of Oslo '.repeat(50));
    assert.ok(one > 0 && many > one + 150, `${one} tokens, and of fifty times the text ${many}`);
  },

  // One conversation goes through every egress and all the way back, with a tool task on each: whatever proofs a turn
  // has, every other provider must be able to read it.
  async tour(sdk) {
    const conversation = drivers[sdk].open('', matrix.sdks.find(s => s.id === sdk).calls[0]);
    const ids = matrix.egresses.map(e => e.id);
    for (const id of [...ids, ...ids.toReversed()]) {
      conversation.model = id;
      const e = expected(sdk, id, 'one call');
      await calling(conversation, e, e.prompt).catch(error => {
        error.message = `${id}: ${error.message}`;
        throw error;
      });
    }
  },

  // Codex runs a command that the model asks for and shows it the output.
  async 'codex exec'(sdk, egress) {
    const home = mkdtempSync(join(tmpdir(), 'codex-'));
    try {
      writeFileSync(join(home, 'config.toml'), `
model = "${egress}"
model_provider = "mmsp"
check_for_update_on_startup = false
analytics.enabled = false
[model_providers.mmsp]
name = "mmsp"
base_url = "${url}/v1"
env_key = "MMSP_SDK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`);
      const {code, out, err} = await codex(home, 'think call exec_command cmd="echo snow-in-$((4+4))-places"');
      assert.equal(code, 0, out + err);
      const items = out.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line))
        .filter(event => event.type === 'item.completed').map(event => event.item);
      const command = items.find(item => item.type === 'command_execution');
      assert.equal(command?.aggregated_output, 'snow-in-8-places\n', out + err);
      assert.match(items.filter(item => item.type === 'agent_message').at(-1)?.text ?? '', /snow-in-8-places/, out + err);
    } finally {
      rmSync(home, {recursive: true, force: true});
    }
  },
};

function codex(home, prompt) {
  const child = spawn(
    fileURLToPath(new URL('node_modules/.bin/codex', import.meta.url)),
    // Its sandbox is not there on every machine, and the command is harmless.
    ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    // The commands it runs have a login shell, whose profile prints what it likes; at this home there is none.
    {cwd: home, env: {PATH: process.env.PATH, HOME: home, CODEX_HOME: home, MMSP_SDK_KEY: apiKey}, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000},
  );
  let out = '';
  let err = '';
  child.stdout.on('data', data => (out += data));
  child.stderr.on('data', data => (err += data));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', code => resolve({code, out, err}));
  });
}

globalThis.AI_SDK_LOG_WARNINGS = false;

describe('checks', {concurrency: 16}, () => {
  for (const {check, sdk, suite, egresses = ['']} of matrix.checks) {
    if (suite !== 'node') continue;
    for (const egress of egresses[0] === '*' ? matrix.egresses.map(e => e.id) : egresses) {
      it(`${sdk} | ${egress} | ${check}`, {timeout: 120_000}, () => record({sdk, egress, test: check}, () => checks[check](sdk, egress)));
    }
  }
});
