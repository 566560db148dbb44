import { describe, expect, it } from 'vitest';
import { kubeletProcess, parseKubeletProcess } from '../../../../src/kubelet/facts/kubelet-process.ts';
import { commandFailure, commandOutput, parseFact } from '../../../support/answers.ts';

describe('kubeletProcess', () => {
  it('reads process, version and words, with their spaces and line breaks', () => {
    const output = '712\nKubernetes v1.36.2\n/usr/bin/kubelet\0--node-labels=a=b c\0--x=1\n2\0--y=\0';
    expect(parseFact(kubeletProcess, { found: commandOutput(output) })).toEqual({
      pid: 712,
      version: 'v1.36.2',
      argv: ['/usr/bin/kubelet', '--node-labels=a=b c', '--x=1\n2', '--y='],
    });
  });

  it.each([
    ['a program that does not print its version', '7\n\n/k\0--a\0', { pid: 7, version: null, argv: ['/k', '--a'] }],
    ['another program', '7\nPython 3.11\n/k\0', { pid: 7, version: null, argv: ['/k'] }],
    ['a process that exited meanwhile', '7\nKubernetes v1.36.2\n', null],
    ['nothing', '', null],
  ])('%s', (_, output, expected) => {
    expect(parseKubeletProcess(output)).toEqual(expected);
  });

  it('is null without a process', () => {
    expect(parseFact(kubeletProcess, { found: commandFailure(3, '') })).toBeNull();
  });
});
