import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { startFirstNode } from './first-node.ts';
import { type CliResult, runCommand } from './run-cli.ts';

/** A lab whose hosts have joined with a fleet file. */
export interface FleetLab {
  readonly directory: string;
  readonly lab: Lab;
  /** Writes the fleet file again, with another number of pods, so that each host is to be changed. Returns its path. */
  readonly fleet: (members?: string) => string;
  readonly run: (...argv: readonly string[]) => Promise<CliResult>;
  readonly close: () => Promise<void>;
}

/**
 * @param hosts number of hosts in the lab; the first one has joined without the file
 * @param members the end of the fleet file, with its hosts
 */
export async function startFleetLab(hosts: number, members: string): Promise<FleetLab> {
  const directory = mkdtempSync(join(tmpdir(), 'ka-fleet-lab-'));
  const lab = await startLab({ directory: join(directory, 'lab'), hosts });
  await startFirstNode(lab);
  const file = join(directory, 'fleet.yaml');
  let maxPods = 60;
  const fleet = (end = members): string => {
    const head = `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n`;
    writeFileSync(file, `${head}baseline: {kubeletConfiguration: {maxPods: ${++maxPods}}}\n${end}\n`);
    return file;
  };
  const run = (...argv: readonly string[]): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') } });
  const close = async (): Promise<void> => {
    await lab.close();
    rmSync(directory, { recursive: true, force: true });
  };
  const joined = await run('apply', '-y', '-f', fleet(), '--canary', '0');
  if (joined.code !== 0) {
    await close();
    expect.unreachable(joined.stderr);
  }
  return { directory, lab, fleet, run, close };
}

/** The changed hosts of a successful run, in the order of their lines. */
export function changedHosts({ code, stderr }: CliResult): readonly string[] {
  expect(code, stderr).toBe(0);
  return stderr.split('\n').flatMap((line) => /^(node[0-9]) changed: /.exec(line)?.[1] ?? []);
}
