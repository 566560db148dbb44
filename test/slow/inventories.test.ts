import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Inventory, readInventories, readVerdicts } from '../support/inventories.ts';
import { runCommand } from '../support/run-cli.ts';

const INVENTORIES = readInventories();
const recorded = new Map(readVerdicts().map((verdict) => [verdict.name, verdict]));

const directory = mkdtempSync(join(tmpdir(), 'ka-inventories-'));
const path = process.env.PATH;
let folders = 0;

/** The path of the inventory in a new directory. */
function writeInventory({ text, ext = 'ini' }: Inventory): string {
  const root = join(directory, String(folders++));
  mkdirSync(root);
  writeFileSync(join(root, `hosts.${ext}`), text);
  return join(root, `hosts.${ext}`);
}

describe('fleet init --from-ansible', () => {
  beforeAll(() => {
    writeFileSync(join(directory, 'ansible-inventory'), `#!/bin/sh\ncat "$2.stderr" >&2\ncat "$2.list"\n`, { mode: 0o755 });
    process.env.PATH = `${directory}:${path}`;
  });
  afterAll(() => {
    process.env.PATH = path;
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(INVENTORIES.map((inventory) => [inventory.name, inventory] as const))('%s', async (name, inventory) => {
    const hosts = writeInventory(inventory);
    writeFileSync(`${hosts}.list`, JSON.stringify(recorded.get(name)?.list));
    writeFileSync(`${hosts}.stderr`, recorded.get(name)?.stderr ?? '');
    const file = join(hosts, '../fleet.yaml');
    const { code, stderr } = await runCommand(['fleet', 'init', '-f', file, '--from-ansible', hosts]);
    const expected = inventory.stderr ?? [];
    expect([code, stderr]).toEqual([inventory.code ?? 0, expected.length === 0 ? '' : expect.stringContaining(expected[0] ?? '')]);
    for (const text of expected) expect(stderr).toContain(text);
    if (code !== 0) return;
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', file, '-o', 'json']);
    const fleet = JSON.parse(stdout) as {
      hosts: readonly { name: string; role: string; ssh: { address: string; user?: string } }[];
      bastions: readonly { name: string }[];
    };
    const named = (role: string): readonly string[] => fleet.hosts.filter((host) => host.role === role).map((host) => host.name);
    expect({
      controlPlanes: named('control-plane').toSorted(),
      workers: named('worker').toSorted(),
      bastions: fleet.bastions.map((one) => one.name),
    }).toEqual({
      controlPlanes: (inventory.controlPlanes ?? []).toSorted(),
      workers: (inventory.workers ?? []).toSorted(),
      bastions: inventory.bastions ?? [],
    });
    const places = fleet.hosts.map((host) => [host.name, `${host.ssh.user ?? ''}@${host.ssh.address}`]);
    expect(Object.fromEntries(places)).toMatchObject(inventory.ssh ?? {});
    expect((await runCommand(['fleet', 'validate', '-f', file])).code).toBe(0);
  });
});
