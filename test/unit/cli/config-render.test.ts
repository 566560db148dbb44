import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../support/run-cli.ts';

const root = mkdtempSync(join(tmpdir(), 'kubeletadm-render-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const render = (...paths: readonly string[]) => runCommand(['config', 'render', '--rootfs', root, '--node-name', 'n1', ...paths]);

describe('config render PATH', () => {
  it('prints only the named files', async () => {
    const { code, stdout, stderr } = await render('/var/lib/kubelet/config.yaml');
    expect(code, stderr).toBe(0);
    expect(stdout.match(/^# \/.*$/gm)).toEqual(['# /var/lib/kubelet/config.yaml']);
  });

  it.each([['/nope'], ['/var/lib/kubelet/config.yaml', '/nope'], ['init.yaml']])('refuses %s %s', async (...paths) => {
    const { code, stdout, stderr } = await render(...paths);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /config render: (\/nope|init\.yaml) is not one of the files that can be shown for .*Pass one of these paths: .*\/var\/lib\/kubelet\/config\.yaml/,
    );
  });
});
