import Anthropic1 from '@anthropic-ai/sdk';
import Anthropic0 from 'anthropic-v0';

import {apiKey, url} from '../lib/matrix.mjs';

function driver(Anthropic, thinkingMode) {
  const client = new Anthropic({apiKey, baseURL: url, maxRetries: 0});
  return {
    fault: error => ({
      status: error.status,
      limited: error instanceof Anthropic.RateLimitError,
      refused: error instanceof Anthropic.BadRequestError,
      aborted: error instanceof Anthropic.APIUserAbortError,
    }),

    open: model => ({
      model,
      messages: [],

      user(text, picture) {
        const content = picture
          ? [{type: 'image', source: {type: 'base64', media_type: picture.mediaType, data: picture.base64}}, {type: 'text', text}]
          : text;
        this.messages.push({role: 'user', content});
      },

      results(results) {
        this.messages.push({role: 'user', content: results.map(r => ({type: 'tool_result', tool_use_id: r.id, content: r.text}))});
      },

      async ask({tools, thinking, schema, whole, signal, onText}) {
        const request = {
          model: this.model,
          max_tokens: 4096,
          messages: this.messages,
          ...(tools && {tools: tools.map(t => ({name: t.name, description: t.description, input_schema: t.parameters}))}),
          ...(thinking && {thinking: thinkingMode}),
          ...(schema && {output_config: {format: {type: 'json_schema', schema}}}),
        };
        const message = whole
          ? await client.messages.create(request)
          : await client.messages.stream(request, {signal}).on('text', piece => onText?.(piece)).finalMessage();

        this.messages.push({role: 'assistant', content: message.content});
        const blocks = type => message.content.filter(block => block.type === type);
        return {
          text: blocks('text').map(block => block.text).join(''),
          thinking: blocks('thinking').map(block => block.thinking).join(''),
          calls: blocks('tool_use').map(block => ({id: block.id, name: block.name, args: block.input})),
          finish: {end_turn: 'stop', tool_use: 'stop', max_tokens: 'length', refusal: 'refused'}[message.stop_reason] ?? message.stop_reason,
          usage: {input: message.usage.input_tokens, output: message.usage.output_tokens},
        };
      },
    }),

    async models() {
      const ids = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },

    count: async (model, text) => (await client.messages.countTokens({model, messages: [{role: 'user', content: text}]})).input_tokens,
  };
}

export const anthropic1 = driver(Anthropic1, {type: 'adaptive', display: 'summarized'});
export const anthropic0 = driver(Anthropic0, {type: 'enabled', budget_tokens: 1024});
