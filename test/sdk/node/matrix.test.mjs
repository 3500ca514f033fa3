// Every scenario with every SDK on every egress.
import './lib/dropped.mjs'; // before the SDKs take the fetch

import {describe, it} from 'node:test';

import {aiAnthropic, aiCompatible, aiGoogle, aiOpenAI, aiOpenAIChat, aiOpenResponses} from './drivers/ai.mjs';
import {anthropic0, anthropic1} from './drivers/anthropic.mjs';
import {genai} from './drivers/genai.mjs';
import {chat, responses} from './drivers/openai.mjs';
import {matrix, record} from './lib/matrix.mjs';
import {cells, run} from './lib/scenarios.mjs';

const drivers = {
  'openai, Responses': responses,
  'openai, Chat Completions': chat,
  'anthropic 1': anthropic1,
  'anthropic 0': anthropic0,
  'google genai': genai,
  'AI SDK openai': aiOpenAI,
  'AI SDK openai.chat': aiOpenAIChat,
  'AI SDK openai-compatible': aiCompatible,
  'AI SDK anthropic': aiAnthropic,
  'AI SDK google': aiGoogle,
  'AI SDK open-responses': aiOpenResponses,
};

globalThis.AI_SDK_LOG_WARNINGS = false;

describe('matrix', {concurrency: 48}, () => {
  for (const sdk of matrix.sdks.filter(sdk => sdk.suite === 'node')) {
    for (const egress of matrix.egresses) {
      for (const cell of cells(sdk)) {
        it(`${sdk.id} | ${egress.id} | ${cell.name}`, {timeout: 60_000}, () =>
          record({sdk: sdk.id, egress: egress.id, test: cell.name}, () => run(drivers[sdk.id], sdk, egress, cell)));
      }
    }
  }
});
