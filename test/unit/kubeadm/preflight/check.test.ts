import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { type Finding, validateFindings } from '../../../../src/kubeadm/preflight/check.ts';

const SWAP: Finding = { id: 'Swap', severity: 'error', message: 'swap is on', hint: 'Run swapoff -a' };
const PORT: Finding = { id: 'Port-10250', severity: 'error', message: 'port 10250 is in use' };
const HOSTNAME: Finding = { id: 'Hostname', severity: 'warning', message: 'the name is odd' };
const ALL = [SWAP, PORT, HOSTNAME];

describe('validateFindings', () => {
  it.each([
    ['nothing', [], ['Swap', 'Port-10250'], ['Hostname']],
    ['one id', ['Swap'], ['Port-10250'], ['Swap', 'Hostname']],
    ['ids in any case', ['sWAP', 'port-10250'], [], ['Swap', 'Port-10250', 'Hostname']],
    ['all', ['all'], [], ['Swap', 'Port-10250', 'Hostname']],
    ['ALL', ['ALL'], [], ['Swap', 'Port-10250', 'Hostname']],
    ['an id without a finding', ['Mem'], ['Swap', 'Port-10250'], ['Hostname']],
  ])('with %s ignored', (_, ignored, errors, warnings) => {
    const verdict = validateFindings(ALL, [{ ignorePreflightErrors: [] }, { ignorePreflightErrors: ignored }], 'worker-2');
    expect(verdict.errors.map(({ code }) => code)).toEqual(errors);
    expect(verdict.warnings.map(({ id }) => id)).toEqual(warnings);
  });

  it('prints for each error the host, the problem, the fix and the way to ignore it', () => {
    expect(validateFindings(ALL, [], 'worker-2').errors.map(formatProblem)).toEqual([
      'worker-2: preflight: swap is on. Run swapoff -a. To continue anyway, use --ignore-preflight-errors=Swap. [Swap]',
      'worker-2: preflight: port 10250 is in use. To continue anyway, use --ignore-preflight-errors=Port-10250. [Port-10250]',
    ]);
  });

  it('returns no errors without findings', () => {
    expect(validateFindings([], [], 'h')).toEqual({ errors: [], warnings: [] });
  });
});
