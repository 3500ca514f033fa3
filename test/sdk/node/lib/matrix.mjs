// The matrix that the Node and the Go suite share, where the gateway is, and the file that takes the results.
import {appendFileSync, readFileSync} from 'node:fs';

export const matrix = JSON.parse(readFileSync(new URL('../../matrix.json', import.meta.url), 'utf8'));

export const url = process.env.MMSP_SDK_URL; // without a path
export const apiKey = process.env.MMSP_SDK_KEY;
if (!url || !apiKey) throw new Error('MMSP_SDK_URL and MMSP_SDK_KEY say where the gateway is; test/sdk/run sets them');

// expected returns what holds for a scenario: its own words, and over them those of the exceptions that apply.
export function expected(sdk, egress, scenario) {
  const applies = (list, id) => !list || list.includes(id);
  const exceptions = matrix.exceptions.filter(e => e.scenario === scenario && applies(e.sdk, sdk) && applies(e.egress, egress));
  return Object.assign({}, matrix.scenarios[scenario], ...exceptions);
}

// record runs one test of the matrix and writes down how it went.
export async function record(result, run) {
  let detail = '';
  try {
    await run();
  } catch (e) {
    detail = e.message.slice(0, 2000);
    throw e;
  } finally {
    if (process.env.MMSP_SDK_RESULTS) {
      appendFileSync(process.env.MMSP_SDK_RESULTS, JSON.stringify({...result, outcome: detail ? 'fail' : 'pass', detail}) + '\n');
    }
  }
}
