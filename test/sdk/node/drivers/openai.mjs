import OpenAI from 'openai';
import {ContentFilterFinishReasonError, LengthFinishReasonError} from 'openai/error';

import {apiKey, url} from '../lib/matrix.mjs';

const client = new OpenAI({apiKey, baseURL: `${url}/v1`, maxRetries: 0});

function fault(error) {
  return {
    status: error.status,
    limited: error instanceof OpenAI.RateLimitError,
    refused: error instanceof OpenAI.BadRequestError,
    aborted: error instanceof OpenAI.APIUserAbortError,
  };
}

const dataURL = picture => `data:${picture.mediaType};base64,${picture.base64}`;

export const responses = {
  fault,
  open: (model, way) => ({
    model,
    input: [],
    previous: undefined,

    user(text, picture) {
      const content = picture ? [{type: 'input_text', text}, {type: 'input_image', image_url: dataURL(picture), detail: 'auto'}] : text;
      this.input.push({role: 'user', content});
    },

    results(results) {
      this.input.push(...results.map(r => ({type: 'function_call_output', call_id: r.id, output: r.text})));
    },

    async ask({tools, thinking, schema, whole, signal, onText}) {
      const request = {
        model: this.model,
        input: this.input,
        ...(this.previous && {previous_response_id: this.previous}),
        ...(way === 'encrypted reasoning' && {store: false, include: ['reasoning.encrypted_content']}),
        ...(tools && {tools: tools.map(t => ({type: 'function', name: t.name, description: t.description, parameters: t.parameters, strict: true}))}),
        ...(thinking && {reasoning: {effort: 'low', summary: 'auto'}}),
        ...(schema && {text: {format: {type: 'json_schema', name: 'report', schema, strict: true}}}),
      };
      const response = whole
        ? await client.responses.create(request)
        : await client.responses.stream(request, {signal}).on('response.output_text.delta', event => onText?.(event.delta)).finalResponse();

      if (way === 'previous response') {
        this.previous = response.id;
        this.input = [];
      } else {
        this.input.push(...response.output);
      }
      const items = type => response.output.filter(item => item.type === type);
      return {
        text: response.output_text,
        thinking: items('reasoning').flatMap(item => item.summary).map(part => part.text).join(''),
        calls: items('function_call').map(item => ({id: item.call_id, name: item.name, args: JSON.parse(item.arguments)})),
        finish: items('message').some(item => item.content.some(part => part.type === 'refusal'))
          ? 'refused'
          : {max_output_tokens: 'length', content_filter: 'refused'}[response.incomplete_details?.reason]
            ?? {completed: 'stop', failed: 'failed'}[response.status],
        usage: {input: response.usage?.input_tokens, output: response.usage?.output_tokens},
      };
    },
  }),
};

export const chat = {
  fault,
  open: (model, way) => ({
    model,
    messages: [],

    user(text, picture) {
      const content = picture ? [{type: 'text', text}, {type: 'image_url', image_url: {url: dataURL(picture)}}] : text;
      this.messages.push({role: 'user', content});
    },

    results(results) {
      this.messages.push(...results.map(r => ({role: 'tool', tool_call_id: r.id, content: r.text})));
    },

    async ask({tools, thinking, schema, whole, signal, onText}) {
      const request = {
        model: this.model,
        messages: this.messages,
        ...(!whole && {stream_options: {include_usage: true}}),
        ...(tools && {tools: tools.map(t => ({type: 'function', function: {name: t.name, description: t.description, parameters: t.parameters}}))}),
        ...(thinking && {reasoning_effort: 'low'}),
        ...(schema && {response_format: {type: 'json_schema', json_schema: {name: 'report', schema, strict: true}}}),
      };
      let completion;
      let thought = '';
      if (whole) {
        completion = await client.chat.completions.create(request);
        thought = completion.choices[0].message.reasoning_content ?? '';
      } else {
        const stream = client.chat.completions.stream(request, {signal})
          .on('chunk', chunk => (thought += chunk.choices[0]?.delta.reasoning_content ?? ''))
          .on('content', piece => onText?.(piece));
        try {
          completion = await stream.finalChatCompletion();
        } catch (error) {
          // The SDK makes an error of an answer that is cut short, and keeps the answer.
          if (!(error instanceof LengthFinishReasonError || error instanceof ContentFilterFinishReasonError)) throw error;
          completion = stream.currentChatCompletionSnapshot;
        }
      }
      const {message, finish_reason: finish} = completion.choices[0];

      const bare = {
        role: 'assistant',
        content: message.content,
        ...(message.tool_calls && {
          tool_calls: message.tool_calls.map(c => ({id: c.id, type: 'function', function: {name: c.function.name, arguments: c.function.arguments}})),
        }),
      };
      this.messages.push(way === 'bare message' ? bare : message);
      return {
        text: message.content ?? '',
        thinking: thought,
        calls: (message.tool_calls ?? []).map(c => ({id: c.id, name: c.function.name, args: JSON.parse(c.function.arguments)})),
        finish: message.refusal ? 'refused' : {tool_calls: 'stop', content_filter: 'refused'}[finish] ?? finish,
        usage: {input: completion.usage?.prompt_tokens, output: completion.usage?.completion_tokens},
      };
    },
  }),
};

export async function models() {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  return ids;
}

export async function embed(model, input) {
  const response = await client.embeddings.create({model, input, dimensions: 256}); // the SDK asks for base64 and decodes it
  return {vectors: response.data.map(d => d.embedding), tokens: response.usage.prompt_tokens};
}
