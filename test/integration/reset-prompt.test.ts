import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runCommand } from '../support/run-cli.ts';

const directory = mkdtempSync(join(tmpdir(), 'ka-prompt-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it.each([
  [['edge-1'], 'edge-1 (127.0.0.9)'],
  [['worker-9', '10.0.0.3'], 'edge-1 (127.0.0.9), 10.0.0.3'],
  [['10.0.0.4'], '10.0.0.4 (127.0.0.8)'],
  [[], 'the local host'],
])('reset asks about the hosts that it would reset: %j', async (names, named) => {
  const fleet = join(directory, 'fleet.yaml');
  writeFileSync(
    fleet,
    'apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\nhosts:\n  - {name: edge-1, address: 127.0.0.9, nodeName: worker-9}\n  - {name: 10.0.0.4, address: 127.0.0.8}\n',
  );
  const questions: string[] = [];
  const confirm = async (question: string): Promise<boolean> => {
    questions.push(question);
    return false;
  };
  const hosts = names.flatMap((name) => ['--host', name]);
  const { code } = await runCommand(['reset', ...hosts, ...(names.length === 0 ? [] : ['--fleet', fleet])], {
    services: () => ({ confirm }),
  });
  expect([code, questions]).toEqual([1, [`Reset ${named}? All changes made by init or join are reverted. [y/N] `]]);
});
