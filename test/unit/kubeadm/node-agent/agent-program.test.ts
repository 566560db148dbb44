import { describe, expect, it } from 'vitest';
import { isProgramName, isSupportedNodeJs, programKind, programPath } from '../../../../src/kubelet/node-agent/agent-program.ts';

const elf = (machine: number, isBig = false): string => {
  const head = Buffer.alloc(64);
  head.write('\x7fELF', 'latin1');
  head[4] = 2;
  head[5] = isBig ? 2 : 1;
  if (isBig) head.writeUInt16BE(machine, 18);
  else head.writeUInt16LE(machine, 18);
  return head.toString('latin1');
};

describe("the agent's program", () => {
  it.each([
    ['#!/usr/bin/env node\nimport', { kind: 'bundle' }],
    [elf(62), { kind: 'executable', machine: 'x86_64' }],
    [elf(183), { kind: 'executable', machine: 'aarch64' }],
    [elf(22, true), { kind: 'executable', machine: 's390x' }],
    [elf(9999), { kind: 'executable', machine: 'unknown' }],
    ['#!/bin/sh\n', { kind: 'other' }],
    ['PK', { kind: 'other' }],
  ])('is recognized by its first bytes (%#)', (head, kind) => {
    expect(programKind({ head })).toEqual(kind);
  });

  it('has its hash in its file name', () => {
    const file = { sha256: 'ab'.repeat(32) };
    expect(programPath('/opt/k/', file, 'bundle')).toBe('/opt/k/kubeletadm-abababababab.mjs');
    expect(programPath('/opt/k', file, 'executable')).toBe('/opt/k/kubeletadm-abababababab');
    expect(['kubeletadm-abababababab.mjs', 'kubeletadm-abababababab', 'kubeletadm', 'kubeletadm-x.mjs'].filter(isProgramName)).toHaveLength(
      2,
    );
  });

  it.each([
    ['v20.19.0', true],
    ['v22.1.0', true],
    ['v20.18.9', false],
    ['v18.20.0', false],
    ['nonsense', false],
  ])('runs on Node.js %s: %s', (version, isSupported) => {
    expect(isSupportedNodeJs(version)).toBe(isSupported);
  });
});
