import { expect, it } from 'vitest';
import { withBigIntegers } from '../../../src/codec/yaml-encode.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';

const catalogue = await loadCatalogue();

it('converts strings to integers in integer fields', () => {
  const config = {
    podPidsLimit: '9223372036854775807',
    maxOpenFiles: 5,
    clusterDomain: '9223372036854775807',
    logging: { flushFrequency: '9007199254740993' },
    evictionHard: { pid: '9007199254740993' },
    notAField: '9007199254740993',
  };
  expect(withBigIntegers(config, catalogue.configurationType(36))).toEqual({
    ...config,
    podPidsLimit: 9223372036854775807n,
    logging: { flushFrequency: 9007199254740993n },
  });
});
