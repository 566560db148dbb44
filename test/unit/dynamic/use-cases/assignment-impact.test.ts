import { expect, it } from 'vitest';
import { reportImpact } from '../../../../src/dynamic/use-cases/assign.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CHANGE = { field: 'systemReserved[memory]', before: null, after: '64Gi', impact: 'unsafe' } as const;

it.each([
  [{}, 'systemReserved[memory]: unset → 64Gi (unsafe)'],
  [{ why: 'the kubelet would exit' }, 'systemReserved[memory]: unset → 64Gi (unsafe, because the kubelet would exit)'],
])('reports the class of a changed field with its reason: %j', (reason, line) => {
  const reporter = recordingReporter();
  reportImpact(new Map([['n1', [{ ...CHANGE, ...reason }]]]), reporter);
  expect(reporter.events.map(({ message }) => message)).toEqual([line, 'highest impact: unsafe']);
});
