import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProgram } from '../../src/host/adapters/large-file.ts';

const AGENT = '#!/usr/bin/env node\n// kubeletadm agent, in one file\nagent();\n';

describe('readProgram', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-program-'));
  const entry = join(directory, 'dist/kubeletadm.mjs');
  const agent = join(directory, 'dist/kubeletadm-agent.mjs');
  const link = join(directory, 'kubeletadm');
  const running = (script: string) => ({ script, executable: process.execPath });

  beforeAll(() => {
    mkdirSync(join(directory, 'dist'));
    writeFileSync(entry, '#!/usr/bin/env node\n// kubeletadm, in several files\nimport "./chunks/a.mjs";\n');
    symlinkSync(entry, link);
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  it('refuses the program in several files if the file of the agent is missing', async () => {
    rmSync(agent, { force: true });
    const refusal = { message: expect.stringContaining(agent), code: 'INPUT_UNREADABLE' };
    await expect(readProgram(entry, undefined)).rejects.toMatchObject({ problems: [refusal], exitCode: 2 });
  });

  it.each([
    ['the running program', undefined, entry],
    ['the running program behind a link', undefined, link],
    ['the named program in several files', entry, ''],
    ['the named program behind a link', link, ''],
    ['that file, named', agent, ''],
  ])('reads the file of the agent: %s', async (_, path, script) => {
    writeFileSync(agent, AGENT);
    expect(await readProgram(path, running(script))).toMatchObject({ size: AGENT.length, head: AGENT.slice(0, 64) });
  });

  it('gives no program for one that runs from its sources', async () => {
    const sources = join(directory, 'bin.ts');
    writeFileSync(sources, '');
    expect(await readProgram(undefined, running(sources))).toBeNull();
  });
});
