// The gateway names in a header what of a request the provider was not asked for. This collects it for each test: the
// SDKs take the global fetch.
import {AsyncLocalStorage} from 'node:async_hooks';

const tests = new AsyncLocalStorage();
const {fetch} = globalThis;

globalThis.fetch = async (...request) => {
  const response = await fetch(...request);
  const names = response.headers.get('x-mmsp-dropped');
  if (names) for (const name of names.split(', ')) tests.getStore()?.add(name);
  return response;
};

// collect runs a test and returns what was dropped in it.
export async function collect(run) {
  const names = new Set();
  await tests.run(names, run);
  return [...names].sort();
}
