import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { firstSteps } from '../../../src/cli/new-cluster.ts';

it('the printed commands install the kubeconfig of the user', () => {
  const root = mkdtempSync(join(tmpdir(), 'kubeletadm-first-steps-'));
  try {
    mkdirSync(join(root, 'home'));
    writeFileSync(join(root, 'admin.conf'), 'kind: Config\n');
    const commands = firstSteps({ nodes: 'Ready: cp1', remote: null, kubeconfig: null })
      .split('\n')
      .filter((line) => line.startsWith('  ') && /\.kube/.test(line))
      .map((line) => line.replace('sudo ', '').replace('/etc/kubernetes', root));
    expect(commands).toHaveLength(3);
    execFileSync('sh', ['-ec', commands.join('\n')], { env: { PATH: process.env.PATH, HOME: join(root, 'home') } });
    expect(readFileSync(join(root, 'home/.kube/config'), 'utf8')).toBe('kind: Config\n');
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
