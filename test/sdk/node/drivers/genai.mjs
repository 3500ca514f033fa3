import {ApiError, FunctionCallingConfigMode, GoogleGenAI} from '@google/genai';

import {apiKey, url} from '../lib/matrix.mjs';

const client = new GoogleGenAI({apiKey, httpOptions: {baseUrl: url}});

export const genai = {
  fault: error => ({
    status: error.status,
    limited: error instanceof ApiError,
    refused: error instanceof ApiError,
    aborted: error.name === 'AbortError',
  }),

  // The way "chat" lets the SDK keep the history, "contents" keeps it here.
  open: (model, way) => ({
    model,
    contents: [],
    parts: [],

    user(text, picture) {
      this.parts = [{text}];
      if (picture) this.parts.push({inlineData: {mimeType: picture.mediaType, data: picture.base64}});
    },

    results(results) {
      this.parts = results.map(r => ({functionResponse: {...(r.id && {id: r.id}), name: r.name, response: {output: r.text}}}));
    },

    async ask({tools, thinking, schema, whole, signal, onText}) {
      const config = {
        ...(signal && {abortSignal: signal}),
        ...(tools && {
          tools: [{functionDeclarations: tools.map(t => ({name: t.name, description: t.description, parametersJsonSchema: t.parameters}))}],
          toolConfig: {functionCallingConfig: {mode: FunctionCallingConfigMode.AUTO}},
        }),
        ...(thinking && {thinkingConfig: {includeThoughts: true, thinkingLevel: 'LOW'}}),
        ...(schema && {responseMimeType: 'application/json', responseJsonSchema: schema}),
      };
      const chat = way === 'chat' ? client.chats.create({model: this.model, history: this.contents}) : undefined;
      const question = {role: 'user', parts: this.parts};
      const request = {model: this.model, contents: [...this.contents, question], config};
      let stream;
      if (whole) {
        stream = [await (chat ? chat.sendMessage({message: this.parts, config}) : client.models.generateContent(request))];
      } else {
        stream = await (chat ? chat.sendMessageStream({message: this.parts, config}) : client.models.generateContentStream(request));
      }

      const parts = [];
      let last;
      for await (const chunk of stream) {
        if (chunk.candidates?.[0]?.finishReason || !last) last = chunk;
        for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
          parts.push(part);
          if (part.text && !part.thought) onText?.(part.text);
        }
      }
      this.contents = chat ? chat.getHistory() : [...this.contents, question, {role: 'model', parts}];

      const reason = last.candidates?.[0]?.finishReason;
      const usage = last.usageMetadata;
      return {
        text: parts.filter(p => !p.thought).map(p => p.text ?? '').join(''),
        thinking: parts.filter(p => p.thought).map(p => p.text ?? '').join(''),
        calls: parts.filter(p => p.functionCall).map(({functionCall: c}) => ({id: c.id, name: c.name, args: c.args})),
        finish: {STOP: 'stop', MAX_TOKENS: 'length', SAFETY: 'refused', PROHIBITED_CONTENT: 'refused', OTHER: 'refused'}[reason] ?? reason ?? 'failed',
        usage: {input: usage?.promptTokenCount, output: usage?.candidatesTokenCount},
      };
    },
  }),
};

export async function models() {
  const ids = [];
  for await (const model of await client.models.list()) ids.push(model.name.replace(/^models\//, ''));
  return ids;
}

export const count = async (model, text) => (await client.models.countTokens({model, contents: text})).totalTokens;

export async function embed(model, contents) {
  const response = await client.models.embedContent({model, contents, config: {outputDimensionality: 256}});
  return {vectors: response.embeddings.map(e => e.values)};
}
