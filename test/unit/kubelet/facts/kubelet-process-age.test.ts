import { describe, expect, it } from 'vitest';
import { parseEach } from '../../../../src/host/facts/parse-text.ts';
import { kubeletCommandLine } from '../../../../src/kubelet/facts/kubelet-process.ts';

const parse = (stdout: string, exitCode = 0) => kubeletCommandLine.parse({ found: { exitCode, stdout, stderr: '' } }, parseEach);

describe('kubeletCommandLine', () => {
  it('returns process, words and age', () => {
    expect(parse('812 5000 5123\n/usr/bin/kubelet\0--config=/a b\n\0')).toEqual({
      pid: 812,
      argv: ['/usr/bin/kubelet', '--config=/a b\n'],
      ageMs: 1230,
      cpuMs: null,
    });
    expect(parse('812 5000 5123 45\nkubelet\0')).toMatchObject({ ageMs: 1230, cpuMs: 450 });
  });

  it('returns no age if the kernel does not report it', () => {
    expect(parse('812  5123 \nkubelet\0')).toMatchObject({ ageMs: null, cpuMs: null });
    expect(parse('812  5123\nkubelet\0')?.ageMs).toBeNull();
    expect(parse('812 5000 \nkubelet\0')?.ageMs).toBeNull();
  });

  it('returns null without a running kubelet', () => {
    expect(parse('', 3)).toBeNull();
    expect(parse('812 1 2\n')).toBeNull();
  });
});
