// Every scenario with every SDK on every egress.
import './lib/dropped.mjs'; // before the SDKs take the fetch

import {describe, it} from 'node:test';

import {drivers} from './drivers/index.mjs';
import {matrix, record} from './lib/matrix.mjs';
import {cells, run} from './lib/scenarios.mjs';

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
