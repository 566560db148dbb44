import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { exitCodeAs, programNameOf, renameCommands } from '../../../src/cli/program-name.ts';

describe('the name of the program', () => {
  it.each<[Record<string, string>, readonly (string | undefined)[], string]>([
    [{}, ['node', '/opt/kubeletadm/dist/kubeletadm.mjs'], 'kubeletadm'],
    [{}, ['node', '/usr/local/bin/kubeadm'], 'kubeadm'],
    [{}, ['kubeadm', undefined], 'kubeadm'],
    [{}, ['./kubeadm', '/opt/kubeletadm'], 'kubeadm'],
    [{}, ['node', '/tmp/kubeadm.mjs'], 'kubeadm'],
    [{}, ['node', '/srv/kubeadm/kubeletadm.mjs'], 'kubeletadm'],
    [{ KUBELETADM_PROGRAM_NAME: 'kubeadm' }, ['node', 'src/bin.ts'], 'kubeadm'],
    [{ KUBELETADM_PROGRAM_NAME: 'other' }, [], 'kubeletadm'],
    [{}, ['node', '/home/a/.krew/bin/kubectl-kubeletadm'], 'kubectl kubeletadm'],
    [{}, ['/home/a/.krew/bin/kubectl-kubeletadm', undefined], 'kubectl kubeletadm'],
  ])('of %j %j', (env, paths, name) => {
    expect(programNameOf(env, paths)).toBe(name);
  });
});

describe('as a plugin of kubectl', () => {
  it('command lines begin with kubectl, once', () => {
    expect(renameCommands('Usage: kubectl kubeletadm join; run kubeletadm init', 'kubectl kubeletadm')).toBe(
      'Usage: kubectl kubeletadm join; run kubectl kubeletadm init',
    );
  });
});

describe('as kubeadm', () => {
  it('command lines have its name, and other text is kept', () => {
    const text =
      'Run kubeletadm init phase certs, kubeletadm --help, kubeletadm bundle create or kubeletadm fleet plan: the kubeletadm agent is /etc/kubeletadm';
    expect(renameCommands(text, 'kubeadm')).toBe(
      'Run kubeadm init phase certs, kubeadm --help, kubeadm bundle create or kubeadm fleet plan: the kubeletadm agent is /etc/kubeletadm',
    );
    expect(renameCommands(text, 'kubeletadm')).toBe(text);
  });

  // "the kubeletadm agent" is the program on a host.
  it.each(COMMANDS.map(({ name }) => name).filter((name) => name !== 'agent'))('the command %s has its name', (name) => {
    expect(renameCommands(`kubeletadm ${name}`, 'kubeadm')).toBe(`kubeadm ${name}`);
  });

  it('every failure is 1', () => {
    const codes = [0, 1, 2, 3, 4, 5, 6, 129, 130, 143] as const;
    expect(codes.map((code) => exitCodeAs('kubeadm', code))).toEqual([0, 1, 1, 1, 1, 1, 6, 129, 130, 143]);
    expect(codes.map((code) => exitCodeAs('kubeletadm', code))).toEqual(codes);
  });
});
