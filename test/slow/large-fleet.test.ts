import { describe, expect, it } from 'vitest';
import { resolved } from '../unit/fleet/support.ts';

describe('a thousand-host file', () => {
  const line = (i: number): string =>
    `  - {name: n${i}, address: 10.${i >> 16}.${(i >> 8) & 255}.${i & 255}, nodeIP: 10.${i >> 16}.${(i >> 8) & 255}.${i & 255}, groups: [edge], variables: {rack: r${i % 20}}}`;
  const head =
    'baseline: {variables: {rack: a}, kubeletConfiguration: {clusterDomain: "{{ rack }}.lan"}}\ngroups: [{name: edge, labels: {pool: edge}}]\nhosts:\n';

  it('resolves 10,000 hosts without quadratic work, written out or as a range', () => {
    const written = `${head}${Array.from({ length: 10_000 }, (_, i) => line(i)).join('\n')}\n`;
    const range = `${head}  - {name: "n[00001:10000]", address: "{{ name }}.lan", groups: [edge]}\n`;
    for (const body of [range, written]) {
      const times = Array.from({ length: 2 }, () => {
        const started = process.cpuUsage();
        expect(resolved(body).hosts).toHaveLength(10_000);
        const { user, system } = process.cpuUsage(started);
        return (user + system) / 1000;
      });
      expect(Math.min(...times)).toBeLessThan(30_000);
    }
  }, 120_000);
});
