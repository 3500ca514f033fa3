import {createAnthropic} from '@ai-sdk/anthropic';
import {createGoogleGenerativeAI} from '@ai-sdk/google';
import {createOpenResponses} from '@ai-sdk/open-responses';
import {createOpenAI} from '@ai-sdk/openai';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {APICallError, Output, generateText, jsonSchema, stepCountIs, streamText, tool} from 'ai';

import {apiKey, matrix, url} from '../lib/matrix.mjs';

const finishes = {error: 'failed', 'content-filter': 'refused'};

function driver(model, providerOptions) {
  return {
    fault: error => ({
      status: error.statusCode,
      limited: APICallError.isInstance(error) && error.statusCode === 429,
      refused: APICallError.isInstance(error) && error.statusCode === 400,
      aborted: error.name === 'AbortError',
    }),

    open: id => ({
      model: id,
      messages: [],

      user(text, picture) {
        const content = picture ? [{type: 'text', text}, {type: 'image', image: picture.base64, mediaType: picture.mediaType}] : text;
        this.messages.push({role: 'user', content});
      },

      ask(options) {
        return this.converse(options);
      },

      async converse({tools, thinking, schema, whole, signal, onText}) {
        const request = {
          model: model(this.model),
          messages: this.messages,
          maxRetries: 0,
          stopWhen: stepCountIs(4),
          abortSignal: signal,
          ...(tools && {
            tools: Object.fromEntries(tools.map(t => [t.name, tool({
              description: t.description,
              inputSchema: jsonSchema(t.parameters),
              execute: async () => t.result,
            })])),
          }),
          ...(thinking && {providerOptions}),
          ...(schema && {output: Output.object({schema: jsonSchema(schema)})}),
        };
        if (whole) {
          const result = await generateText(request);
          this.messages.push(...result.response.messages);
          return {
            text: result.text,
            thinking: result.steps.map(step => step.reasoningText ?? '').join(''),
            calls: result.steps.flatMap(step => step.toolCalls).map(c => ({id: c.toolCallId, name: c.toolName, args: c.input})),
            finish: finishes[result.finishReason] ?? result.finishReason,
            usage: {input: result.totalUsage.inputTokens, output: result.totalUsage.outputTokens},
          };
        }
        const result = streamText({...request, onError() {}}); // errors are in the stream
        const answer = {text: '', thinking: '', calls: []};
        for await (const part of result.fullStream) {
          switch (part.type) {
            case 'start-step': answer.text = ''; break;
            case 'text-delta': answer.text += part.text; onText?.(part.text); break;
            case 'reasoning-delta': answer.thinking += part.text; break;
            case 'tool-call': answer.calls.push({id: part.toolCallId, name: part.toolName, args: part.input}); break;
            case 'tool-error': case 'error': throw part.error instanceof Error ? part.error : Object.assign(new Error(JSON.stringify(part.error)), {cause: part.error});
            case 'abort': throw Object.assign(new Error('aborted'), {name: 'AbortError'});
            case 'finish':
              answer.finish = finishes[part.finishReason] ?? part.finishReason;
              answer.usage = {input: part.totalUsage.inputTokens, output: part.totalUsage.outputTokens};
          }
        }
        if (schema) answer.text = JSON.stringify(await result.output);
        this.messages.push(...(await result.response).messages);
        return answer;
      },
    }),
  };
}

const baseURL = `${url}/v1`;
const openai = createOpenAI({apiKey, baseURL});
const compatible = createOpenAICompatible({apiKey, baseURL, name: 'mmsp', includeUsage: true, supportsStructuredOutputs: true});
const anthropic = createAnthropic({apiKey, baseURL});
const google = createGoogleGenerativeAI({apiKey, baseURL: `${url}/v1beta`});
const openResponses = createOpenResponses({apiKey, url: `${baseURL}/responses`, name: 'mmsp'});

const openaiOptions = {openai: {forceReasoning: true, reasoningEffort: 'low', reasoningSummary: 'auto'}};

export const aiOpenAI = driver(openai, openaiOptions);
export const aiOpenAIChat = driver(openai.chat, {openai: {forceReasoning: true, reasoningEffort: 'low'}});
export const aiCompatible = driver(compatible, {mmsp: {reasoningEffort: 'low'}});
export const aiAnthropic = driver(anthropic, {anthropic: {thinking: {type: 'enabled', budgetTokens: 1024}}});
export const aiGoogle = driver(google, {google: {thinkingConfig: {includeThoughts: true, thinkingBudget: 1024}}});
export const aiOpenResponses = driver(openResponses, {mmsp: {reasoningEffort: 'low', reasoningSummary: 'auto'}});
