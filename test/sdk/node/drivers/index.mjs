// The drivers by the ids that the matrix gives the SDKs.
import {aiAnthropic, aiCompatible, aiGoogle, aiOpenAI, aiOpenAIChat, aiOpenResponses} from './ai.mjs';
import {anthropic0, anthropic1} from './anthropic.mjs';
import {genai} from './genai.mjs';
import {chat, responses} from './openai.mjs';

export const drivers = {
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
